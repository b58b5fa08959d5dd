"""Calls that StackStorm refuses: a parameter that no file declares, and one that an action of its core requires. Penstock
refuses them, or a line names them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InvalidInput
from penstock_import.stackstorm_rules import criterion
from penstock_import.stackstorm_runners import CORE_PARAMETERS, CORE_RUNNERS
from tests.penstock_import.test_reviewed_changes import of_pack, simulated, texts
from tests.penstock_import.test_stackstorm_rules import holds_here

WEBHOOK = {"type": "core.st2.webhook", "parameters": {"url": "x"}}


def flow(workflow: dict[str, Any], name: str = "flow", **parameters: Any) -> dict[str, Any]:
    """Return the files of a workflow of Orquesta."""
    head = {"name": name, "runner_type": "orquesta", "entry_point": f"workflows/{name}.yaml"}
    return {
        f"actions/{name}.yaml": head | {"parameters": parameters},
        f"actions/workflows/{name}.yaml": {"version": 1.0} | workflow,
    }


def rule(ref: str, parameters: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    action = {"ref": ref, "parameters": parameters or {}}
    return {"name": "rule", "enabled": True, "trigger": WEBHOOK, "action": action} | keys


# -- inputs that the action does not declare ------------------------------------------------------------------------

GROUPS: dict[str, Any] = {
    "input": [
        {"group": "blue"},
        "other",
        {"my-hosts": ["a", "b"]},
        {"both": "<% ctx(group) %>-<% ctx(size) %>"},
    ],
    "tasks": {"one": {"action": "core.noop"}},
    "output": [
        {"group": "<% ctx(group) %>"},
        {"other": "<% ctx(other) %>"},
        {"hosts": "<% ctx('my-hosts') %>"},
        {"both": "<% ctx(both) %>"},
    ],
}


def test_input_without_a_declaration_is_a_constant(tmp_path: Path) -> None:
    workflow = GROUPS | {"input": ["size", *GROUPS["input"]]}
    simulation, report = simulated(tmp_path, flow(workflow, size={"type": "string", "default": "s"}))
    assert report.mapped["workflows"] == 1, report.gaps
    expected = {"group": "blue", "other": None, "hosts": ["a", "b"], "both": "blue-m"}
    assert simulation.run("depot.flow", {"size": "m"}).result == expected
    for name in ("group", "other", "both"):
        with pytest.raises(InvalidInput, match=name):
            simulation.run("depot.flow", {name: "red"})


def test_default_of_an_input_reads_an_undeclared_one(tmp_path: Path) -> None:
    workflow = {
        "input": [{"base": {"a": 1}}, {"all": "<% ctx(base) %>"}],
        "vars": [{"base": {"b": 2}}, {"text": "<% ctx(base).a %>"}],
        "tasks": {"one": {"action": "core.noop"}},
        "output": [{"base": "<% ctx(base) %>"}, {"all": "<% ctx(all) %>"}, {"text": "<% ctx(text) %>"}],
    }
    simulation, report = simulated(tmp_path, flow(workflow, all={"type": "object"}))
    assert report.mapped["workflows"] == 1, report.gaps
    assert simulation.run("depot.flow").result == {"base": {"a": 1, "b": 2}, "all": {"a": 1}, "text": 1}


def test_undeclared_input_with_an_unmapped_default_is_a_gap(tmp_path: Path) -> None:
    workflow = GROUPS | {"input": [{"group": "<% unknown() %>"}], "output": [{"group": "<% ctx(group) %>"}]}
    project, report = of_pack(tmp_path, flow(workflow))
    assert report.mapped["workflows"] == 0
    assert any("the default <% unknown() %> of the input group" in text for text in texts(report))
    assert project.workflows["flow"]["vars"] == {"group": None}


@pytest.mark.parametrize("name", ["group", "bogus"])
def test_caller_with_an_undeclared_parameter_is_refused(tmp_path: Path, name: str) -> None:
    caller = {"tasks": {"one": {"action": "depot.flow", "input": {name: "red"}}}}
    inner = GROUPS | {"input": [{"group": "blue"}], "output": [{"group": "<% ctx(group) %>"}]}
    chain = {"name": "links", "runner_type": "action-chain", "entry_point": "chains/links.yaml"}
    links = {"chain": [{"name": "one", "ref": "core.local", "parameters": {"cmd": "true"}}]}
    files = flow(inner) | flow(caller, "caller") | {"rules/rule.yaml": rule("depot.flow", {name: "red"})}
    files |= {"actions/links.yaml": chain, "actions/chains/links.yaml": links}
    files |= {"rules/other.yaml": rule("depot.links", {name: 1}, name="other")}
    project, report = of_pack(tmp_path, files)
    assert set(project.workflows) == {"flow", "links"}
    assert not project.rules
    refused = [text for text in texts(report) if "is refused by Penstock" in text and f"`{name}`" in text]
    assert len(refused) == 3, texts(report)


# -- actions of StackStorm's core -----------------------------------------------------------------------------------


def test_action_of_core_has_its_parameters(tmp_path: Path) -> None:
    given = {"cmd": "true", "hosts": "h1", "password": "x", "port": "22"}
    workflow = {"tasks": {"one": {"action": "core.remote", "input": given}}}
    project, report = of_pack(tmp_path, flow(workflow))
    parameters = project.actions["core_remote"]["parameters"]
    secrets = {name for name, about in parameters.items() if about.get("secret")}
    assert secrets == {"password", "private_key", "passphrase", "sudo_password"}
    assert {name for name, about in parameters.items() if about.get("required")} == {"cmd", "hosts"}
    assert (
        not {"sudo", "parallel", "dir", "timeout"} & parameters.keys()
    )  # immutable, or the time limit of the task
    assert project.workflows["flow"]["tasks"]["one"]["input"]["port"] == 22
    assert report.applied["workflows"] == 1


@pytest.mark.parametrize("name", sorted(CORE_PARAMETERS))
def test_each_action_of_core_applies(tmp_path: Path, name: str) -> None:
    values = {"string": "uuid1", "integer": 5, "object": {"a": "b"}, "boolean": True, "array": ["a"]}
    given = {
        key: about.get("enum", [values[about["type"]]])[0] for key, about in CORE_PARAMETERS[name].items()
    }
    project, report = of_pack(tmp_path, {"rules/rule.yaml": rule(f"core.{name}", given)})
    assert project.rules["rule"]["params"].keys() == given.keys(), report.gaps
    assert name in CORE_RUNNERS
    simulation, _ = simulated(tmp_path / "again", {"rules/rule.yaml": rule(f"core.{name}", given)})
    only_required = {key: given[key] for key, about in CORE_PARAMETERS[name].items() if about.get("required")}
    run = simulation.run(f"depot.core_{name}", only_required)
    assert (run.status, "to do" in str(run.error)) == ("failed", True)


@pytest.mark.parametrize(
    ("action", "given"),
    [
        ("core.http", {"method": "GET"}),
        ("core.http", {"url": "http://localhost", "method": "FETCH"}),
        ("core.remote", {"cmd": "true", "hosts": "h1", "sudo": True}),
        ("core.local", {"cmd": "true", "bogus": 1}),
        ("core.noop", {"message": "x"}),
    ],
)
def test_call_of_core_that_stackstorm_refuses_has_a_line(
    tmp_path: Path, action: str, given: dict[str, Any]
) -> None:
    files = flow({"tasks": {"one": {"action": action, "input": given}}})
    files |= {"rules/rule.yaml": rule(action, given)}
    project, report = of_pack(tmp_path, files)
    assert (report.mapped["workflows"], report.mapped["rules"]) == (0, 0), report.gaps
    assert not project.rules


def test_line_of_an_action_without_parameters_names_types_and_secrets(tmp_path: Path) -> None:
    for ref in ("core.announcement", "other.thing"):
        files = {"rules/rule.yaml": rule(ref, {"token": "x"})}
        _, report = of_pack(tmp_path / ref, files)
        (line,) = [gap.by_hand for gap in report.gaps if ref in gap.what]
        assert "masks secret parameters" in line
        assert "type of the parameter" in line


# -- names that become one ------------------------------------------------------------------------------------------


def test_actions_whose_names_become_the_same_stay_apart(tmp_path: Path) -> None:
    script = {"name": "give-pens", "runner_type": "python-script", "entry_point": "pens.py"}
    timer = {"type": "core.st2.IntervalTimer", "parameters": {"unit": "hours", "delta": 1}}
    files = flow({"tasks": {"one": {"action": "depot.give-pens"}}}, "give_pens")
    files |= {
        "actions/a.yaml": script,
        "rules/one.yaml": rule("depot.give_pens", name="one", trigger=timer),
        "rules/two.yaml": rule("depot.give-pens", name="two", trigger=timer),
        "policies/limit.yaml": {
            "name": "limit",
            "resource_ref": "depot.give-pens",
            "policy_type": "action.concurrency",
            "parameters": {"threshold": 1},
        },
    }
    project, report = of_pack(tmp_path, files)
    assert "depot_actions:give_pens_2_" in str(project.actions["give_pens_2"])
    assert "limits" in project.actions["give_pens_2"]
    assert project.workflows["give_pens"]["tasks"]["one"]["action"] == "depot.give_pens_2"
    assert {name: entry["action"] for name, entry in project.schedules.items()} == {
        "one": "depot.give_pens",
        "two": "depot.give_pens_2",
    }
    assert any("give-pens is named give_pens_2 in Penstock" in text for text in texts(report))
    assert (report.applied["actions"], report.applied["workflows"]) == (1, 1)


def test_action_of_another_pack_with_the_name_of_an_own_one(tmp_path: Path) -> None:
    own = {"name": "other_act", "runner_type": "python-script", "entry_point": "a.py"}
    tasks = {
        name: {"action": ref}
        for name, ref in (
            ("a", "depot.other_act"),
            ("b", "other.act"),
            ("c", "core.local"),
            ("d", "core-local.x"),
        )
    }
    tasks["c"] = {"action": "other.act-"}
    project, _ = of_pack(tmp_path, flow({"tasks": tasks}) | {"actions/a.yaml": own})
    ours = [task["action"] for task in project.workflows["flow"]["tasks"].values()]
    assert ours == ["depot.other_act", "depot.other_act_2", "depot.other_act_3", "depot.core_local_x"]


def test_action_that_a_later_file_replaces_is_a_gap(tmp_path: Path) -> None:
    first = {"name": "act", "runner_type": "python-script", "entry_point": "a.py", "description": "first"}
    files = {"actions/a.yaml": first, "actions/b.yaml": first | {"description": "second"}}
    project, report = of_pack(tmp_path, files)
    assert project.actions["act"]["description"] == "second"
    assert any("the action act, which actions/b.yaml replaces" in text for text in texts(report))
    assert (report.found["actions"], report.applied["actions"]) == (2, 1)


# -- criteria -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        ("trigger.body['a-b']", "trigger.body", 'payload["a-b"]'),
        ('trigger["body"]["a b"].c', "trigger.body", 'payload["a b"].c'),
        ("trigger.body[0]", "trigger.body", "payload[0]"),
        ("trigger['a-b'][1]", "trigger", 'payload["a-b"][1]'),
    ],
)
def test_path_in_brackets_is_mapped(path: str, root: str, expected: str) -> None:
    text = criterion(path, {"type": "eq", "pattern": 1}, root)
    assert text == f"({expected} | default(none)) == 1"


def test_path_outside_of_the_body_says_so() -> None:
    with pytest.raises(Exception, match="other than its body"):
        criterion("trigger['headers']['a-b']", {"type": "eq", "pattern": 1}, "trigger.body")


@pytest.mark.parametrize("pattern", ["jenkinsfile", ".*Sick.*", "a b-c/1", "I"])
def test_iregex_with_a_plain_word_holds_as_there(pattern: str) -> None:
    text = criterion("trigger.x", {"type": "iregex", "pattern": pattern})
    word = pattern.replace(".*", "")
    values = [
        word,
        word.upper(),
        f"x{word.title()}y",
        f"x\n{word}\n",
        word[:-1],
        "",
        "S\u0130CK",
        "\u017fic\u212a",
    ]
    values += ["s\u0131ck", "A\u00a0b-c/1", "jenk\u0130n\u017ff\u0131le"]
    for value in values:
        expected = bool(re.search(pattern, value, re.IGNORECASE))
        assert holds_here(text, {"x": value}) == expected, (pattern, value)


# -- forms of a workflow that Orquesta refuses ----------------------------------------------------------------------


@pytest.mark.parametrize("key", ["vars", "input", "output"])
@pytest.mark.parametrize(
    "value", [{"a": 1}, "a=1", [], None, [{"a": 1, "b": 2}], [{"a": 1}, {"a": 1}], [{}], [5]]
)
def test_workflow_with_a_list_of_another_form_is_a_gap(tmp_path: Path, key: str, value: Any) -> None:
    """The expectations of this and of the next test are those of Orquesta's inspection."""
    tasks = {"one": {"action": "core.noop"}}
    _, report = of_pack(tmp_path, flow({key: value, "tasks": tasks}))
    assert report.mapped["workflows"] == 0
    lines = [gap for gap in report.gaps if gap.what.startswith(f"`{key}`, which has to be a list of ")]
    assert ["StackStorm refuses this workflow" in gap.by_hand for gap in lines] == [True]


@pytest.mark.parametrize(
    ("task", "subject"),
    [
        ({"next": {"do": "noop"}}, "`next` of one, which has to be a list of mappings"),
        ({"next": "noop"}, "`next` of one, which has to be a list of mappings"),
        ({"next": ["noop"]}, "`next` of one, which has to be a list of mappings"),
        ({"next": None}, "`next` of one, which has to be a list of mappings"),
        ({"next": [{"publish": {"a": 1}}]}, "`publish` of one, which has to be a text or a list"),
        ({"next": [{"publish": [{"a": 1, "b": 2}]}]}, "`publish` of one, which has to be a text or a list"),
        ({"next": [{"publish": ["a"]}]}, "`publish` of one, which has to be a text or a list"),
        ({"next": [{"when": True, "do": "noop"}]}, "`when` of one, which has to be a text"),
        ({"next": [{"do": []}]}, "`do` of one, which has to be a text or a list of different names"),
        ({"next": [{"do": ["noop", "noop"]}]}, "`do` of one, which has to be a text or a list"),
        ({"input": {}}, "`input` of one, which has to be a text or a mapping with keys"),
        ({"action": None}, "`action` of one, which has to be a text"),
        ({"delay": 1.5}, "`delay` of one, which has to be an integer or an expression"),
        ({"join": "1"}, "`join` of one, which has to be `all` or an integer"),
        ({"retry": {"delay": 1}}, "`retry` of one, which has to have a `count`"),
        ({"with": ["a"]}, "`with` of one, which has to be a text or a mapping"),
        (None, "the task one, which has to be a mapping"),
    ],
)
def test_task_of_another_form_is_a_gap(tmp_path: Path, task: Any, subject: str) -> None:
    task = {"action": "core.noop"} | task if task is not None else None
    _, report = of_pack(tmp_path, flow({"tasks": {"one": task}}))
    assert report.mapped["workflows"] == 0
    lines = [gap for gap in report.gaps if gap.what.startswith(subject)]
    assert ["StackStorm refuses this workflow" in gap.by_hand for gap in lines] == [True], report.gaps
    assert not any("unknown key" in gap.by_hand for gap in report.gaps)


@pytest.mark.parametrize(
    "task",
    [
        {"next": []},
        {"next": [{"publish": "a=1"}]},
        {"next": [{"publish": [{"a": None}, {"b": 2}], "do": ["noop"]}]},
        {"action": "core.local", "input": {"cmd": "ls"}, "retry": {"count": 2, "delay": 1}},
    ],
)
def test_task_of_a_form_that_orquesta_accepts_is_mapped(tmp_path: Path, task: dict[str, Any]) -> None:
    _, report = of_pack(tmp_path, flow({"tasks": {"one": {"action": "core.noop"} | task}}))
    assert report.mapped["workflows"] == 1, report.gaps
