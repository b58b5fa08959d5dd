"""Workflows of Mistral run as Mistral's engine runs them, or are not mapped, with the reason. The expectations are
read from the engine of Mistral 23. Conditions see what their task published. Published values do not see each other. An item is
not split. A failure stops only what depends on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock import NonRetryable
from penstock.testing import Simulation
from penstock_import.report import Report
from tests.penstock_import.test_reviewed_changes import of_pack, simulated, texts

FETCH: dict[str, Any] = {
    "name": "fetch",
    "runner_type": "python-script",
    "entry_point": "fetch.py",
    "parameters": {"name": {"type": "string"}, "names": {"type": "array"}},
}
ECHO = {"action": "depot.fetch", "input": {"name": "a"}}


def files(
    tasks: dict[str, Any],
    parameters: dict[str, Any] | None = None,
    document: dict[str, Any] | None = None,
    **keys: Any,
) -> dict[str, Any]:
    parameters = parameters or {}
    metadata = {
        "name": "flow",
        "runner_type": "mistral-v2",
        "entry_point": "workflows/flow.yaml",
        "parameters": parameters,
    }
    inputs = {"input": list(parameters)} if parameters else {}
    whole = {"version": "2.0", "depot.flow": {"type": "direct", **inputs, "tasks": tasks, **keys}}
    return {
        "actions/fetch.yaml": FETCH,
        "actions/flow.yaml": metadata,
        "actions/workflows/flow.yaml": whole if document is None else document,
    }


def mapped(
    folder: Path, tasks: dict[str, Any], parameters: dict[str, Any] | None = None, **keys: Any
) -> tuple[Simulation, Report]:
    simulation, report = simulated(folder, files(tasks, parameters, **keys))
    assert report.mapped["workflows"] == 1, texts(report)
    return simulation, report


def test_workflow_that_is_not_mapped_counts_as_a_workflow(tmp_path: Path) -> None:
    _, report = simulated(tmp_path, files({"echo": ECHO | {"pause-before": True}}))
    assert (report.found["workflows"], report.mapped["workflows"]) == (1, 0)
    assert report.found["actions"] == 1  # fetch


@pytest.mark.parametrize(
    ("fails", "started", "status"),
    [([], ["first", "good"], "completed"), (["first"], ["bad", "first"], "completed"),
     (["first", "bad"], ["bad", "first"], "failed"), (["good"], ["first", "good"], "failed")],
)  # fmt: skip
def test_outcome_chooses_the_next_task(
    tmp_path: Path, fails: list[str], started: list[str], status: str
) -> None:
    first = ECHO | {"on-success": ["good"], "on-error": "bad"}
    simulation, _ = mapped(tmp_path, {"first": first, "good": ECHO, "bad": ECHO})
    for name in ("first", "good", "bad"):
        if name in fails:
            simulation.fake(name, raises=RuntimeError("no"))
        else:
            simulation.fake(name, returns={"result": name})
    run = simulation.run("depot.flow")
    assert run.status == status
    assert sorted(name for name, status in run.tasks.items() if status != "skipped") == started


AFTER = {"done": ECHO, "bad": ECHO, "last": ECHO}


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("is_handled", [False, True])
def test_on_complete_runs_after_both_ends_and_handles_no_failure(
    tmp_path: Path, fails: bool, is_handled: bool
) -> None:
    """The task after that of `on-complete` runs too. A failure without `on-error` fails the workflow then."""
    first = ECHO | {"on-complete": ["done"], **({"on-error": ["bad"]} if is_handled else {})}
    tasks = {"first": first, **AFTER, "done": ECHO | {"on-success": "last"}}
    if not is_handled:
        del tasks["bad"]
    simulation, _ = mapped(tmp_path, tasks)
    for name in tasks:
        if fails and name == "first":
            simulation.fake(name, raises=RuntimeError("no"))
        else:
            simulation.fake(name, returns={})
    run = simulation.run("depot.flow")
    assert run.status == ("failed" if fails and not is_handled else "completed")
    ran = {name for name in tasks if run.tasks[name] in ("completed", "failed")}
    assert ran == {"first", "done", "last"} | ({"bad"} if fails and is_handled else set())


@pytest.mark.parametrize(
    ("answer", "status"), [(True, "completed"), (False, "failed"), (RuntimeError("no"), "failed")]
)
def test_on_complete_that_fails_the_workflow_has_a_condition(
    tmp_path: Path, answer: Any, status: str
) -> None:
    look = ECHO | {
        "on-success": ["done"],
        "on-complete": [{"fail": "{{ not task('look').result.result.ok }}"}],
    }
    simulation, _ = mapped(tmp_path, {"look": look, "done": ECHO})
    if isinstance(answer, Exception):
        simulation.fake("look", raises=answer)
    else:
        simulation.fake("look", returns={"result": {"ok": answer}})
    simulation.fake("done", returns={})
    assert simulation.run("depot.flow").status == status


@pytest.mark.parametrize("text", ["<% env().st2_execution_id %>", "{{ env().st2_execution_id }}"])
def test_workbook_with_one_workflow_knows_its_execution(tmp_path: Path, text: str) -> None:
    workflow = {"type": "direct", "tasks": {"one": ECHO | {"input": {"name": text}}}}
    document = {"version": "2.0", "name": "depot.flow", "workflows": {"any": workflow}}
    simulation, report = simulated(tmp_path, files({}, document=document))
    assert report.mapped["workflows"] == 1, texts(report)
    simulation.fake("one", returns={})
    run = simulation.run("depot.flow")
    assert run.input("one") == {"name": str(run.id)}


def test_published_values_reach_inputs_and_output(tmp_path: Path) -> None:
    tasks = {
        "first": {
            "action": "depot.fetch name=<% $.who %>",
            "publish": {"seen": "<% task(first).result.result %>"},
            "on-success": [{"second": "<% $.who = 'pen' %>"}, {"third": "{{ _.who == 'ink' }}"}],
        },
        "second": {"action": "depot.fetch", "input": {"name": "<% $.seen %>"}},
        "third": ECHO,
    }
    output = {"seen": "<% $.seen %>"}
    simulation, _ = mapped(tmp_path, tasks, {"who": {"type": "string", "required": True}}, output=output)
    for name in tasks:
        simulation.fake(name, returns={"result": f"of {name}"})
    run = simulation.run("depot.flow", {"who": "pen"})
    assert run.result == {"seen": "of first"}
    assert run.tasks == {"first": "completed", "second": "completed", "third": "skipped"}
    assert [run.input(name) for name in ("first", "second")] == [{"name": "pen"}, {"name": "of first"}]


def test_failure_stops_only_dependent_tasks(tmp_path: Path) -> None:
    """Mistral goes on with other branches, and fails the workflow at its end. No line names a difference."""
    tasks = {"breaks": ECHO, "first": ECHO | {"on-success": "second"}, "second": ECHO}
    simulation, report = mapped(tmp_path, tasks)
    simulation.fake("breaks", raises=RuntimeError("no"))
    for name in ("first", "second"):
        simulation.fake(name, returns={})
    run = simulation.run("depot.flow")
    assert run.status == "failed"
    assert run.tasks["second"] == "completed"
    assert not [text for text in texts(report) if "starts nothing more" in text]


def test_item_that_is_a_list_stays_whole(tmp_path: Path) -> None:
    """Orquesta splits an item that has a name, and Mistral does not."""
    task = {
        "action": "depot.fetch",
        "with-items": "pair in <% $.pairs %>",
        "input": {"names": "<% $.pair %>"},
    }
    simulation, _ = mapped(tmp_path, {"each": task}, {"pairs": {"type": "array", "required": True}})
    simulation.fake("each", returns={})
    run = simulation.run("depot.flow", {"pairs": [["a", "b"], ["c"]]})
    assert run.status == "completed"
    assert [run.input("each", item)["names"] for item in (0, 1)] == [["a", "b"], ["c"]]


READS_NEIGHBOUR = {"a": "<% task(one).result %>", "b": "<% $.a %>"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"on-complete": [{"two": "<% $.who = 1 %>"}]}, "`on-complete` of one in line"),
        ({"on-error": "two", "on-complete": [{"fail": "<% $.who = 1 %>"}]}, "`on-complete` of one in line"),
        ({"on-complete": "two", "on-success": "two"}, "which starts a task twice"),
        ({"on-complete": "two", "on-error": "two"}, "which starts a task twice"),
        ({"join": "all", "on-complete": "two"}, "the join of one"),
        ({"publish": {"st2": 1}}, "a variable with the name st2"),
        ({"publish": {"x": "<% env().st2_execution_id_ %>"}}, "`env`"),
        ({"publish-on-error": {"x": 1}}, "`publish-on-error` of the task one"),
        ({"timeout": 3}, "`timeout` of the task one"),
        ({"concurrency": 3}, "`concurrency` of the task one"),
        ({"on-error": [{"two": "<% $.who = 1 %>"}]}, "`on-error` of one"),
        ({"on-success": "pause"}, "which starts pause"),
        ({"on-success": ["two", "two"]}, "which starts a task twice"),
        ({"join": "one"}, "the join of one"),
        ({"join": "all", "on-error": "two"}, "the join of one"),
        ({"retry": {"count": 2, "break-on": "<% $.who %>"}}, "`break-on` of `retry` of one"),
        ({"retry": {"count": "<% $.who %>"}}, "`retry` of one"),
        ({"with-items": ["a in <% $.who %>", "b in <% $.who %>"]}, "`with-items` of one"),
        ({"publish": {"x": 1}, "on-success": [{"two": "<% $.x = 1 %>"}]}, "which reads what one publishes"),
        (
            {"publish": {"x": "<% $.who %>"}, "on-success": [{"two": "{{ _.x == 1 }}"}]},
            "which reads what one publishes",
        ),
        (
            {"publish": {"seen": "<% $.who %>"}, "on-success": [{"two": "<% $.seen = 1 %>"}]},
            "which reads what one publishes",
        ),
        (
            {"publish": {"who": "<% task(one).result %>"}, "on-success": [{"two": "<% $.who = 1 %>"}]},
            "which reads what one publishes",
        ),
        ({"publish": READS_NEIGHBOUR}, "which reads a value that is published beside it"),
        ({"publish": {"x": "<% $ %>"}}, "the whole context"),
        ({"publish": {"x": "{{ _ }}"}}, "the whole context"),
        ({"publish": {"x": "<% env().x %>"}}, "`env`"),
        ({"publish": {"x": "<% $.who.select($.y) %>"}}, "select()"),
        ({"publish": {"x": "<% task(one).state %>"}}, "a part of a task beside its result"),
        ({"publish": {"x": "<% $.who\n + 1 %>"}}, "over several lines"),
        ({"publish": {"x": "{% if _.who %}a{% endif %}"}}, "a block of Jinja"),
        ({"publish": {"x": "{{ _.who }}\n"}}, "makes its value a text"),
        ({"publish": {"x": "a {{- _.who }}"}}, "removes the spaces around it"),
        ({"publish": {"x": "a\r\n<% $.who %>"}}, "a carriage return"),
        ({"action": "std.http"}, "the action std.http"),
        ({"action": "<% $.who %>"}, "the action of one"),
        ({"action": "depot.fetch name=[1]", "input": None}, "the action of one"),
        ({"workflow": "other"}, "`workflow` of the task one"),
    ],
)
def test_part_without_an_equal_is_named(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    task = {key: value for key, value in (ECHO | options).items() if value is not None}
    project, report = of_pack(
        tmp_path,
        files(
            {"one": task, "two": ECHO | {"publish": {"seen": 1}}},
            {"who": {"type": "string", "required": True}},
        ),
    )
    assert report.mapped["workflows"] == 0
    assert "flow" in project.actions
    assert "flow" not in project.workflows
    [text] = [text for text in texts(report) if "the runner mistral-v2" in text]
    assert reason in text


ONE = {"depot.flow": {"tasks": {"one": ECHO}}}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"version": "2.0", "depot.other": {"tasks": {"one": ECHO}}}, "version 2.0 with the one workflow depot.flow"),
        ({"version": "2.0", "workflows": {"main": {"tasks": {"one": ECHO}}}}, "version 2.0"),
        (ONE, "version 2.0"),
        ({"version": "2.0", "name": "depot.other", "workflows": {"a": {"tasks": {"one": ECHO}}}}, "version 2.0"),
        ({"version": "2.0", "name": "depot.flow", "workflows": {key: {"tasks": {"one": ECHO}} for key in "ab"}}, "version 2.0"),
        ({"version": "2.0", "name": "depot.flow", "workflows": {"a": 1}}, "a workflow that is not a mapping"),
        ({"version": "2.0", "name": "depot.flow", "actions": {}, "workflows": {"a": {"tasks": {"one": ECHO}}}}, "version 2.0"),
        ({"version": "2.0", "depot.flow": {"type": "reverse", "tasks": {"one": ECHO}}}, "the type reverse"),
        ({"version": "2.0", "depot.flow": {"task-defaults": {"retry": {}}, "tasks": {"one": ECHO}}}, "`retry` of `task-"),
        ({"version": "2.0", "depot.flow": {"input": [{"a": {"b": 1}}], "tasks": {"one": ECHO}}}, "a default that is a mapping"),
        ({"version": "2.0", "depot.flow": {"input": [{"a": 1}], "tasks": {"one": ECHO}}}, "a, which only the action or only"),
        ({"version": "2.0", "depot.flow": {"input": {"a": 1}, "tasks": {"one": ECHO}}}, "which is not a list"),
        ({"version": "2.0", "depot.flow": {"input": ["a"], "tasks": {"one": ECHO}}}, "a, which only the action or only"),
        ({"version": "2.0", "depot.flow": {"tasks": {"one": ECHO, "a b": ECHO}}}, "the task a b"),
    ],
)  # fmt: skip
def test_document_without_an_equal_is_named(tmp_path: Path, document: dict[str, Any], reason: str) -> None:
    _, report = of_pack(tmp_path, files({}, document=document))
    [text] = [text for text in texts(report) if "the runner mistral-v2" in text]
    assert reason in text


def test_result_of_task_with_items_is_not_read_as_the_one_of_orquesta(tmp_path: Path) -> None:
    """The result is a list in Mistral, and a mapping of `items` in Orquesta."""
    looped = {
        "action": "depot.fetch",
        "with-items": "x in <% $.who %>",
        "publish": {"all": "<% task(each).result %>"},
    }
    _, report = of_pack(tmp_path, files({"each": looped}, {"who": {"type": "array", "required": True}}))
    assert any("the result of a task with items" in text for text in texts(report))


def test_caller_that_reads_a_mistral_result_is_named(tmp_path: Path) -> None:
    """StackStorm's result has `tasks` beside the output."""
    source = files({"one": ECHO}, output={"x": "1"})
    caller = {"tasks": {"call": {"action": "depot.flow", "next": [{"publish": [{"x": "<% result().x %>"}]}]}}}
    source["actions/caller.yaml"] = {
        "name": "caller",
        "runner_type": "orquesta",
        "entry_point": "workflows/caller.yaml",
    }
    source["actions/workflows/caller.yaml"] = caller
    _, report = of_pack(tmp_path, source)
    assert any("a Mistral workflow, which has no such result in Penstock" in text for text in texts(report))
    assert any("the result of the Mistral workflow flow" in text for text in texts(report))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a {{ _.who }}\n", "a pen"),
        ("a {{ _.who }}\n\n", "a pen\n"),
        ("a <% $.who %>\n", "a pen\n"),
        ("a\n", "a\n"),
    ],
)
def test_text_with_jinja_loses_its_last_line_break(tmp_path: Path, text: str, expected: str) -> None:
    """Mistral renders such a text in one piece, as Jinja does by default."""
    task = {"action": "depot.fetch", "input": {"name": text}}
    simulation, _ = mapped(tmp_path, {"one": task}, {"who": {"type": "string", "required": True}})
    simulation.fake("one", returns={})
    assert simulation.run("depot.flow", {"who": "pen"}).input("one") == {"name": expected}


@pytest.mark.parametrize(("answer", "expected"), [("no", "made"), ("yes", "left")])
def test_condition_sees_values_of_its_own_task(tmp_path: Path, answer: str, expected: str) -> None:
    """Orquesta evaluates the condition first."""
    look = ECHO | {
        "publish": {"found": "<% task(look).result.result.found %>"},
        "on-success": [{"made": '<% $.found = "no" %>'}, {"left": '<% $.found = "yes" %>'}],
    }
    follower = ECHO | {"on-success": "end"}
    simulation, _ = mapped(tmp_path, {"look": look, "made": follower, "left": follower, "end": ECHO})
    simulation.fake("look", returns={"result": {"found": answer}})
    for name in ("made", "left", "end"):
        simulation.fake(name, returns={})
    tasks = simulation.run("depot.flow").tasks
    other = {"made": "left", "left": "made"}[expected]
    assert tasks == {"look": "completed", expected: "completed", other: "skipped", "end": "completed"}


def test_key_that_occurs_twice_is_named(tmp_path: Path) -> None:
    """YAML keeps the last one."""
    source = files({"task": ECHO})
    text = yaml.safe_dump(source["actions/workflows/flow.yaml"])
    source["actions/workflows/flow.yaml"] = text.replace("name: a\n", "name: a\n        name: b\n")
    _, report = of_pack(tmp_path, source)
    assert any("the key name in line" in text and "twice" in text for text in texts(report))


def test_output_does_not_see_its_neighbours(tmp_path: Path) -> None:
    """A later output of Orquesta sees the earlier ones."""
    output = {"who": "<% task(task).result %>", "again": "<% $.who %>"}
    parameters = {"who": {"type": "string", "required": True}}
    _, report = of_pack(tmp_path, files({"task": ECHO}, parameters, output=output))
    assert any("`output` in line" in text for text in texts(report))


def test_variables_of_a_workflow_are_computed_from_its_input(tmp_path: Path) -> None:
    tasks = {
        "one": {
            "action": "depot.fetch name=<% $.path %>",
            "publish": {"path": "<% task(one).result.result %>"},
            "on-success": "two",
        },
        "two": {"action": "depot.fetch", "input": {"name": "<% $.path %>", "names": "<% $.all %>"}},
    }
    variables = {"path": "<% $.who + '.x' %>", "all": ["<% $.who %>"]}
    simulation, _ = mapped(tmp_path, tasks, {"who": {"type": "string", "required": True}}, vars=variables)
    for name in tasks:
        simulation.fake(name, returns={"result": f"of {name}"})
    run = simulation.run("depot.flow", {"who": "ann"})
    assert [run.input(name) for name in tasks] == [
        {"name": "ann.x"},
        {"name": "of one", "names": ["ann"]},
    ]


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"a": 1, "b": "<% $.a %>"}, "reads a value that is published beside it"),
        ({"who": 1}, "which has the name of an input"),
        ([{"a": 1}], "which is not a mapping"),
        ({"st2": 1}, "a variable with the name st2"),
    ],
)
def test_variables_without_an_equal_are_named(tmp_path: Path, variables: Any, reason: str) -> None:
    _, report = of_pack(tmp_path, files({"one": ECHO}, {"who": {"type": "string"}}, vars=variables))
    assert report.mapped["workflows"] == 0
    assert reason in " ".join(texts(report))


def test_published_mapping_replaces_an_earlier_mapping(tmp_path: Path) -> None:
    """Orquesta merges both. Mistral looks the name up in what was published, then in the variables and the input."""
    tasks = {
        "one": ECHO | {"publish": {"about": "<% task(one).result.result %>"}, "on-success": "two"},
        "two": ECHO | {"publish": {"about": "<% task(two).result.result %>"}},
    }
    simulation, _ = mapped(tmp_path, tasks, {"about": {"type": "object"}}, output={"about": "<% $.about %>"})
    simulation.fake("one", returns={"result": {"b": 1}})
    simulation.fake("two", returns={"result": {"c": 1}})
    assert simulation.run("depot.flow", {"about": {"a": 1}}).result == {"about": {"c": 1}}


def test_variable_of_several_tasks_before_a_join_is_named(tmp_path: Path) -> None:
    """At a join, Mistral merges the whole contexts of the branches: a branch with the older value may win."""
    tasks = {
        "one": ECHO | {"publish": {"x": 1}, "on-success": ["two", "three"]},
        "two": ECHO | {"publish": {"x": 2}, "on-success": "last"},
        "three": ECHO | {"on-success": "last"},
        "last": ECHO | {"join": "all"},
    }
    _, report = of_pack(tmp_path, files(tasks))
    assert report.mapped["workflows"] == 0
    assert "which one and two publish in a workflow with a join" in " ".join(texts(report))


@pytest.mark.parametrize(
    ("failing", "ran", "status"),
    [("one", ["one", "mend"], "completed"), ("two", ["one", "two", "own"], "completed"), ("mend", ["one", "mend"], "failed")],
)  # fmt: skip
def test_clause_of_task_defaults_is_that_of_tasks_without_their_own(
    tmp_path: Path, failing: str, ran: list[str], status: str
) -> None:
    """The default starts `mend` after each failure but its own."""
    tasks = {
        "one": ECHO | {"on-success": "two"},
        "two": ECHO | {"on-error": ["own"]},
        "own": ECHO,
        "mend": ECHO,
    }
    simulation, _ = mapped(tmp_path, tasks, **{"task-defaults": {"on-error": ["mend"]}})
    for name in tasks:
        fails = name == failing or (name == "one" and failing == "mend")
        if fails:
            simulation.fake(name, raises=NonRetryable("no"))
        else:
            simulation.fake(name, returns={})
    run = simulation.run("depot.flow")
    assert run.status == status
    assert [name for name in tasks if run.tasks[name] != "skipped"] == ran


@pytest.mark.parametrize(
    ("about", "supplied", "value"), [({}, {}, None), ({}, {"name": "b"}, "b"), ({"default": "c"}, {}, "c")]
)
def test_input_has_the_value_of_the_action_and_no_default(
    tmp_path: Path, about: dict[str, Any], supplied: dict[str, Any], value: Any
) -> None:
    """The runner passes each parameter of the action, so that Mistral uses no default of its own."""
    task = {"action": "depot.fetch", "input": {"name": "<% $. name %>"}}
    parameters = {"name": {"type": "string"} | about}
    simulation, _ = mapped(tmp_path, {"one": task}, parameters, input=[{"name": "d"}])
    simulation.fake("one", returns={})
    assert simulation.run("depot.flow", supplied).input("one") == {"name": value}


def test_task_without_an_action_completes(tmp_path: Path) -> None:
    tasks = {"one": {"on-success": ["two"]}, "two": ECHO}
    simulation, _ = mapped(tmp_path, tasks)
    simulation.fake("two", returns={})
    run = simulation.run("depot.flow")
    assert (run.status, run.tasks["one"], run.tasks["two"]) == ("completed", "completed", "completed")


WORKBOOK = {
    "version": "2.0",
    "name": "depot.flow",
    "workflows": {"main": {"tasks": {"one": ECHO}}, "spare": {"tasks": {"two": ECHO}}},
}


@pytest.mark.parametrize("name", ["main", "spare"])
def test_workbook_starts_the_workflow_of_its_action(tmp_path: Path, name: str) -> None:
    source = files({}, {"workflow": {"default": f"depot.flow.{name}", "immutable": True}}, WORKBOOK)
    project, report = of_pack(tmp_path, source)
    assert report.mapped["workflows"] == 1, texts(report)
    assert list(project.workflows["flow"]["tasks"]) == ["one" if name == "main" else "two"]
    other = "spare" if name == "main" else "main"
    assert any(
        f"the workflow {other} of a workbook, whose action starts {name}" in text for text in texts(report)
    )


@pytest.mark.parametrize(
    "about",
    [
        {"default": "depot.flow.main"},
        {"default": "main", "immutable": True},
        {"default": "depot.flow.x", "immutable": True},
    ],
)
def test_workbook_whose_workflow_is_not_fixed_is_named(tmp_path: Path, about: dict[str, Any]) -> None:
    _, report = of_pack(tmp_path, files({}, {"workflow": about}, WORKBOOK))
    assert report.mapped["workflows"] == 0
    assert "version 2.0 with the one workflow depot.flow" in " ".join(texts(report))


def test_parameter_of_the_runner_is_no_input(tmp_path: Path) -> None:
    source = files({"one": ECHO}, {"skip_notify": {"type": "array", "default": ["one"]}})
    del source["actions/workflows/flow.yaml"]["depot.flow"]["input"]
    _, report = of_pack(tmp_path, source)
    assert report.mapped["workflows"] == 1, texts(report)


def test_line_of_a_refused_part_has_its_file(tmp_path: Path) -> None:
    _, report = of_pack(tmp_path, files({"one": ECHO | {"timeout": 5}}))
    assert "in line 9 of actions/workflows/flow.yaml" in " ".join(texts(report))


@pytest.mark.parametrize("name", ["context", "task", "task_name"])
def test_parameter_of_the_runner_that_changes_a_run_is_named(tmp_path: Path, name: str) -> None:
    """The runner had `task` until 2018, and has `task_name` since: a workflow never gets the one of its version."""
    _, report = of_pack(tmp_path, files({"one": ECHO}, {name: {"type": "string"}}))
    assert f"the parameter {name}, which is one of the runner" in " ".join(texts(report))
