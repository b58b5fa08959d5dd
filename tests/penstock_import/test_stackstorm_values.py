"""Values that StackStorm changes on their way: null where an action has a default, mappings that are published over mappings,
texts of parameters without a type. The expectations are what StackStorm's own code does."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.errors import InvalidInput
from penstock.testing import Simulation
from penstock_import.applied import keep_applicable
from penstock_import.report import Report
from penstock_import.stackstorm import StackStormPack

SHELL = {"runner_type": "local-shell-cmd"}
ECHO = {
    "name": "say",
    **SHELL,
    "parameters": {
        "word": {"type": "string", "default": "hello"},
        "cmd": {"type": "string", "default": "echo {{ word }}", "immutable": True},
    },
}


def imported(folder: Path, files: dict[str, Any]) -> tuple[Simulation, Report]:
    """Return a simulation of a pack of these files and of the action `say`, and the report of its import."""
    pack = folder / "depot"
    for name, content in {
        "pack.yaml": {
            "ref": "depot",
            "name": "depot",
            "description": "Pens.",
            "version": "1.0.0",
            "author": "Pat",
        },
        "actions/say.yaml": ECHO,
        **files,
    }.items():
        (pack / name).parent.mkdir(parents=True, exist_ok=True)
        (pack / name).write_text(yaml.safe_dump(content, sort_keys=False))
    source = StackStormPack(pack)
    project = source.mapped()
    keep_applicable(project, source.report)
    project.write(folder / "ours", "", source.report)
    return Simulation(str(folder / "ours")), source.report


def flow(workflow: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    """Return the files of the workflow `depot.flow`."""
    head = {"name": "flow", "runner_type": "orquesta", "entry_point": "workflows/flow.yaml"}
    return {"actions/flow.yaml": head | {"parameters": parameters}, "actions/workflows/flow.yaml": workflow}


@pytest.mark.parametrize(("word", "printed"), [(None, "hello"), ("bye", "bye")])
def test_null_is_the_default_of_an_action(tmp_path: Path, word: str | None, printed: str) -> None:
    workflow = {
        "input": ["word"],
        "tasks": {
            "one": {
                "action": "depot.say",
                "input": {"word": "<% ctx(word) %>"},
                "next": [{"publish": [{"said": "<% result().stdout %>"}]}],
            }
        },
        "output": [{"said": "<% ctx(said) %>"}],
    }
    simulation, report = imported(tmp_path, flow(workflow, word={"type": "string"}))
    assert report.mapped["workflows"] == 1, report.gaps
    assert simulation.run("depot.flow", {"word": word}).result == {"said": printed}


def test_null_that_is_written_is_the_default_of_an_action(tmp_path: Path) -> None:
    workflow = {
        "tasks": {
            "one": {
                "action": "depot.say",
                "input": {"word": None},
                "next": [{"publish": [{"said": "<% result().stdout %>"}]}],
            }
        },
        "output": [{"said": "<% ctx(said) %>"}],
    }
    simulation, _ = imported(tmp_path, flow(workflow))
    assert simulation.run("depot.flow").result == {"said": "hello"}


def test_parameters_that_are_missing_have_their_defaults(tmp_path: Path) -> None:
    about = {
        "parameters": {"cmd": {"default": "pwd; echo $MOOD", "immutable": True}, "cwd": {"default": "/"}}
    }
    about["parameters"]["env"] = {"type": "object", "default": {"MOOD": "fine"}}
    simulation, _ = imported(tmp_path, {"actions/where.yaml": {"name": "where", **SHELL, **about}})
    assert simulation.run("depot.say").result["stdout"] == "hello"
    assert simulation.run("depot.where").result["stdout"] == "/\nfine"


def test_python_action_is_given_all_of_its_parameters(tmp_path: Path) -> None:
    parameters = {
        "count": {"type": "integer", "default": 3},
        "note": {"type": "string"},
        "log_level": {"default": "x"},
    }
    head = {
        "name": "weigh",
        "runner_type": "python-script",
        "entry_point": "weigh.py",
        "parameters": parameters,
    }
    imported(tmp_path, {"actions/weigh.yaml": head})
    code: dict[str, Any] = {}
    exec((tmp_path / "ours" / "depot_actions.py").read_text(), code)
    code["weigh_run"] = lambda **supplied: supplied
    assert code["weigh_"]()["result"] == {"count": 3, "note": None}
    assert code["weigh_"](count=None, note="a")["result"] == {"count": 3, "note": "a"}


def merged_there(old: Any, new: Any) -> Any:
    """Return what Orquesta keeps of an old and a new value: mappings are merged level by level."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    return {**old, **{key: merged_there(old.get(key), value) for key, value in new.items()}}


MET = [
    ("a", "b"),
    ({}, "b"),
    ("a", {"b": 1}),
    ({"a": 1}, {"b": 1}),
    ({"a": {"b": 1, "c": 1}, "d": [1]}, {"a": {"b": 2}, "d": [2]}),
    ({"a": {"b": 1}}, {"a": None}),
    ({"a": 1}, {"a": {"b": 1}}),
]


@pytest.mark.parametrize(("first", "second"), MET)
def test_mapping_that_meets_a_mapping_is_merged(tmp_path: Path, first: Any, second: Any) -> None:
    step = {"when": "<% succeeded() %>", "publish": [{"facts": "<% result().stdout %>"}]}
    tasks: dict[str, Any] = {
        name: {
            "action": "depot.say",
            "input": {"word": shlex.quote(json.dumps(word)) if isinstance(word, dict) else word},
        }
        for name, word in (("one", first), ("two", second))
    }
    tasks["one"]["next"], tasks["two"]["next"] = [step | {"do": "two"}], [step]
    workflow = {"vars": [{"facts": {"z": 1}}], "tasks": tasks, "output": [{"facts": "<% ctx(facts) %>"}]}
    simulation, report = imported(tmp_path, flow(workflow))
    assert report.mapped["workflows"] == 1, report.gaps
    ran = simulation.run("depot.flow")
    assert ran.result == {"facts": merged_there(merged_there({"z": 1}, first), second)}, ran


@pytest.mark.parametrize(("first", "second"), MET)
def test_variable_with_the_name_of_an_input_is_merged_into_it(
    tmp_path: Path, first: Any, second: Any
) -> None:
    workflow = {
        "input": ["facts"],
        "vars": [{"facts": second}, {"again": "<% ctx(facts) %>"}],
        "tasks": {"one": {"action": "core.noop"}},
        "output": [{"facts": "<% ctx(facts) %>"}, {"again": "<% ctx(again) %>"}],
    }
    simulation, report = imported(tmp_path, flow(workflow, facts={"type": ["object", "string"]}))
    assert report.mapped["workflows"] == 1, report.gaps
    expected = merged_there(first, second)
    assert simulation.run("depot.flow", {"facts": first}).result == {"facts": expected, "again": expected}


def test_policy_for_retries_leaves_out_tasks_of_a_workflow(tmp_path: Path) -> None:
    log = tmp_path / "tries"
    command = {"cmd": {"default": f"echo x >> {log}; false", "immutable": True}}
    policy = {
        "name": "again",
        "resource_ref": "depot.break",
        "policy_type": "action.retry",
        "parameters": {"retry_on": "failure", "max_retry_count": 2, "delay": 0},
    }
    files = {
        "actions/break.yaml": {"name": "break", **SHELL, "parameters": command},
        "policies/again.yaml": policy,
    }
    simulation, _ = imported(tmp_path, files | flow({"tasks": {"one": {"action": "depot.break"}}}))
    assert simulation.run("depot.flow").status == "failed"
    assert log.read_text() == "x\n"
    assert simulation.run("depot.break").status == "failed"
    assert log.read_text() == "x\n" * 4


@pytest.mark.parametrize(
    "command", ["echo {{ word | regex_replace('a', 'b') }}", "{% if word is odd_word %}a{% endif %}"]
)
def test_command_with_a_filter_of_stackstorm_is_named(tmp_path: Path, command: str) -> None:
    parameters = {"word": {"type": "string"}, "cmd": {"default": command, "immutable": True}}
    _, report = imported(tmp_path, {"actions/odd.yaml": {"name": "odd", **SHELL, "parameters": parameters}})
    assert [gap.what.rpartition(": ")[2] for gap in report.gaps] in (
        ["the filter regex_replace"],
        ["the test odd_word"],
    )


COMPUTED = {"type": "string", "default": "{{ config_context.folder }}"}


def test_command_with_a_computed_default_fails_until_it_is_written(tmp_path: Path) -> None:
    action = {
        "name": "store",
        **SHELL,
        "parameters": {"cmd": {"default": "pwd", "immutable": True}, "cwd": COMPUTED},
    }
    simulation, report = imported(tmp_path, {"actions/store.yaml": action})
    assert (report.mapped["actions"], report.applied["actions"]) == (1, 2), "only `say` is mapped"
    assert simulation.run("depot.store", {}).status == "failed"


def test_workflow_requires_values_of_computed_defaults(tmp_path: Path) -> None:
    workflow = {
        "input": [{"word": "bye"}],
        "tasks": {"first": {"action": "depot.say", "input": {"word": "<% ctx(word) %>"}}},
    }
    simulation, report = imported(tmp_path, flow(workflow, word=COMPUTED))
    assert (report.mapped["workflows"], report.applied["workflows"]) == (0, 1)
    with pytest.raises(InvalidInput, match="word"):
        simulation.run("depot.flow", {})


def test_immutable_parameter_of_an_action_is_refused(tmp_path: Path) -> None:
    """StackStorm refuses a caller that names it, even with its own value."""
    about = {"word": {"type": "string"}, "end": {"type": "string", "default": "!", "immutable": True}}
    action = {
        "name": "call",
        **SHELL,
        "parameters": about | {"cmd": {"default": "echo {{word}}{{end}}", "immutable": True}},
    }
    supplied = {"word": "hi"}
    workflow = {"version": 1.0, "tasks": {"a": {"action": "depot.call", "input": supplied}}}
    simulation, _ = imported(tmp_path / "out", {"actions/call.yaml": action, **flow(workflow)})
    assert simulation.run("depot.call", supplied).result["stdout"] == "hi!"
    workflow["tasks"]["a"]["input"] = {"end": "!", **supplied}  # type: ignore[index]
    _, report = imported(tmp_path / "named", {"actions/call.yaml": action, **flow(workflow)})
    assert any("end" in gap.what + gap.by_hand and gap.file == "actions/flow.yaml" for gap in report.gaps)


def test_immutable_parameter_of_a_workflow_is_named(tmp_path: Path) -> None:
    end = {"type": "string", "default": "!", "immutable": True}
    workflow = {"version": 1.0, "input": ["end"], "tasks": {"a": {"action": "core.noop"}}}
    _, report = imported(tmp_path, flow(workflow, end=end))
    assert any(gap.what == "the parameter end, which is immutable" for gap in report.gaps)
