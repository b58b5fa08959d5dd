"""Packs of Attune behave here as its loader, its scheduler and its enforcer of policies read them, or the difference is
named."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock import NonRetryable
from penstock.language.rules.trial import evaluate
from penstock.language.terms.sources import Source
from penstock.language.workflows.model import Workflow
from penstock.language.workflows.serialization import from_value
from penstock.testing.memory_workflow import MemoryWorkflow
from penstock_import.applied import keep_applicable
from penstock_import.attune import AttunePack, AttuneProject
from penstock_import.report import Report

ACT = {
    "ref": "p.act",
    "runner_type": "shell",
    "entry_point": "act.sh",
    "parameters": {
        "crate": {"type": "string", "required": True},
        "unit": {"type": "string", "default": "kg"},
    },
}
FLOW = {"ref": "p.flow", "workflow_file": "workflows/flow.yaml"}


def imported(folder: Path, **files: Any) -> tuple[AttuneProject, Report]:
    """Return the project and the report of an import. A keyword `actions__act` is the file actions/act.yaml."""
    whole: dict[str, Any] = {"pack": {"ref": "p"}, "actions__act": ACT, **files}
    for name, content in whole.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content, sort_keys=False))
    (folder / "actions" / "act.sh").write_text("cat\n")
    pack = AttunePack(folder)
    project = pack.mapped()
    keep_applicable(project, pack.report)
    return project, pack.report


def flow_of(
    folder: Path, tasks: list[dict[str, Any]], parameters: Any = None, **more: Any
) -> tuple[Workflow, AttuneProject, Report]:
    """Return the workflow `p.flow` with these tasks, the project and the report."""
    head = {**FLOW, **({"parameters": parameters} if parameters is not None else {})}
    project, report = imported(
        folder, actions__flow=head, actions__workflows__flow={"version": "1", "tasks": tasks, **more}
    )
    flow = from_value({"workflow": "p.flow", **project.workflows["flow"]}, Source("x", 1))
    return flow, project, report


def inputs(flow: Workflow, parameters: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the input of each task that starts at once."""
    world = MemoryWorkflow(flow, parameters).begin()
    return {name: world.input(name, item) for name, item in world.open}


def lines(report: Report) -> str:
    return "\n".join(f"{gap.file}:{gap.line} {gap.what} | {gap.by_hand}" for gap in report.gaps)


def test_variable_with_a_template_keeps_its_text(tmp_path: Path) -> None:
    """Attune stores the variables of a workflow as they are written."""
    variables = {"a": "{{ parameters.n }}", "b": ["{% raw", {"c": "plain"}]}
    flow, _, report = flow_of(
        tmp_path,
        [{"name": "t", "action": "core.noop"}],
        {"n": {"type": "string", "default": "x"}},
        vars=variables,
        output_map={"a": "{{ workflow.a }}", "b": "{{ workflow.b }}"},
    )
    world = MemoryWorkflow(flow, {}).begin()
    assert world.final is not None
    assert world.final.output == variables
    assert "the variable a, {{ parameters.n }}, which Attune does not render" in lines(report)
    assert report.mapped["workflows"] == 1


def test_task_without_input_gets_the_parameters_of_the_workflow(tmp_path: Path) -> None:
    parameters = {"crate": {"type": "string", "required": True}, "unit": {"type": "string"}}
    tasks: list[dict[str, Any]] = [
        {"name": "t", "action": "p.act"},
        {"name": "u", "action": "p.act", "input": {"crate": "c"}},
    ]
    flow, _, report = flow_of(tmp_path, tasks, parameters)
    assert inputs(flow, {"crate": "x", "unit": None}) == {
        "t": {"crate": "x", "unit": "kg"},
        "u": {"crate": "c"},
    }
    assert report.mapped["workflows"] == 1, lines(report)


@pytest.mark.parametrize(
    ("parameters", "action", "subject"),
    [
        ({"crate": {"type": "string", "required": True}, "unit": {"type": "string", "default": "t"}}, "p.act",
         "passes it unit of the workflow, without the workflow's default"),
        ({"crate": {"type": "string", "required": True}}, "other.act", "passes it the parameters of the workflow"),
    ],
)  # fmt: skip
def test_input_that_only_attune_gives_is_a_gap(
    parameters: Any, action: str, subject: str, tmp_path: Path
) -> None:
    _, _, report = flow_of(tmp_path, [{"name": "t", "action": action}], parameters)
    assert subject in lines(report)
    assert report.mapped["workflows"] == 0


def test_parameter_that_the_action_does_not_declare_is_named(tmp_path: Path) -> None:
    parameters = {"crate": {"type": "string", "required": True}, "ship": {"type": "string", "required": True}}
    _, project, report = flow_of(tmp_path, [{"name": "t", "action": "p.act"}], parameters)
    assert "passes it the parameters of the workflow, ship among them" in lines(report)
    assert project.workflows["flow"]["tasks"]["t"]["input"].keys() == {"crate"}


@pytest.mark.parametrize("unit", [None, "{{ event.payload.unit }}"])
def test_null_for_a_parameter_of_an_action_is_its_default(unit: Any, tmp_path: Path) -> None:
    rule = {"ref": "p.r", "trigger_ref": "p.came", "action_ref": "p.act",
            "action_params": {"crate": "c", "unit": unit}}  # fmt: skip
    project, _ = imported(tmp_path, rules__r=rule, triggers__came={"ref": "p.came"})
    params = project.rules["r"]["params"]
    for payload, expected in (({}, "kg"), ({"unit": None}, "kg"), ({"unit": "t"}, "t" if unit else "kg")):
        given = params["unit"] if unit is None else evaluate(params["unit"], payload=payload)
        assert given == expected, payload
    assert project.actions["act"]["parameters"]["unit"]["type"] == "string", "null would reach the program"


def test_default_in_a_json_schema_is_not_filled_in(tmp_path: Path) -> None:
    """Attune looks for defaults in parameters that are listed one by one."""
    schema = {"type": "object", "properties": ACT["parameters"], "required": ["crate"]}
    project, report = imported(tmp_path, actions__act={**ACT, "parameters": schema})
    assert "the defaults of unit of action p.act, which are in a JSON Schema" in lines(report)
    assert project.actions["act"]["parameters"]["unit"] == {"type": ["string", "null"]}
    assert report.mapped["actions"] == 0


def test_null_of_a_task_is_the_default_of_the_action(tmp_path: Path) -> None:
    task = {"name": "t", "action": "p.act", "input": {"crate": "c", "unit": "{{ parameters.unit }}"}}
    flow, _, _ = flow_of(tmp_path, [task], {"unit": {"type": "string"}})
    assert inputs(flow, {"unit": None}) == {"t": {"crate": "c", "unit": "kg"}}
    assert inputs(flow, {"unit": "t"}) == {"t": {"crate": "c", "unit": "t"}}


POLICY = {"ref": "p.one", "action_ref": "p.act", "concurrency": {"limit": 1, "method": "enqueue"}}


def test_policy_of_an_action_is_a_limit(tmp_path: Path) -> None:
    project, report = imported(tmp_path, policies__one=POLICY)
    assert project.limits["one"]["max"] == 1
    assert report.mapped["policies"] == 1


@pytest.mark.parametrize(
    ("changed", "subject"),
    [
        ({"action_ref": "p.flow"}, "Attune enforces no policy for workflows"),
        ({"concurrency": {"limit": 1}}, "with the limit 1 and the method None"),
        ({"concurrency": {"method": "enqueue"}}, "with the limit None and the method 'enqueue'"),
        ({"concurrency": {"limit": 0, "method": "cancel"}}, "with the limit 0 and the method 'cancel'"),
        ({"concurrency": {"limit": "2", "method": "cancel"}}, "with the limit '2' and the method 'cancel'"),
        ({"rate_limit": {"max_executions": 5}}, "of 5 executions in None seconds"),
        ({"action_ref": None}, "is for each action of the pack that has no policy of its own"),
        ({"action_ref": None, "scope": {"action_ref": "p.act"}}, "scope of policy p.one"),
        (
            {"concurrency": {"limit": 1, "method": "enqueue", "parameters": ["host.name"]}},
            "policy one groups by host.name, which p.act does not declare as a parameter",
        ),
        ({"enabled": "false"}, "enabled of policy p.one, 'false', which Attune reads as true"),
    ],
)
def test_policy_that_attune_reads_otherwise_is_left_out(changed: Any, subject: str, tmp_path: Path) -> None:
    project, report = imported(
        tmp_path,
        policies__one={**POLICY, **changed},
        actions__flow=FLOW,
        actions__workflows__flow={"version": "1", "tasks": [{"name": "t", "action": "core.noop"}]},
    )
    assert project.limits == {}
    assert subject in lines(report)
    assert report.mapped["policies"] == 0


@pytest.mark.parametrize("enabled", [False, "false"])
def test_disabled_action_runs_no_program(enabled: Any, tmp_path: Path) -> None:
    project, report = imported(tmp_path, actions__act={**ACT, "enabled": enabled})
    assert "command" not in project.actions["act"]
    assert "is disabled, and Attune fails each of its executions" in lines(report)
    module: dict[str, Any] = {}
    exec(project.python(), module)
    function = module[str(project.actions["act"]["function"]).rpartition(":")[2]]
    with pytest.raises(NonRetryable, match="disabled"):
        function(crate="c", unit="kg")


def test_rule_whose_enabled_is_a_text_is_named(tmp_path: Path) -> None:
    rule = {"ref": "p.r", "trigger_ref": "p.came", "action_ref": "p.act", "enabled": "no",
            "action_params": {"crate": "c"}}  # fmt: skip
    project, report = imported(tmp_path, rules__r=rule, triggers__came={"ref": "p.came"})
    assert project.rules["r"]["enabled"] is False
    assert "enabled of rule p.r, 'no', which Attune reads as true" in lines(report)


def test_disabled_sensor_polls_nothing(tmp_path: Path) -> None:
    sensor = {"ref": "p.s", "enabled": False, "trigger_types": ["p.came"], "poll_interval": 5}
    project, _ = imported(tmp_path, sensors__s=sensor, triggers__came={"ref": "p.came"})
    assert "poll" not in project.triggers["came"]


def test_timeout_that_attune_does_not_read_is_a_gap(tmp_path: Path) -> None:
    project, report = imported(tmp_path, actions__act={**ACT, "timeout": 5})
    assert project.actions["act"]["timeout"] == 600
    assert "timeout of action p.act" in lines(report)
    project, report = imported(tmp_path / "other", actions__act={**ACT, "timeout_seconds": 5})
    assert project.actions["act"]["timeout"] == 5
    assert report.mapped["actions"] == 1


@pytest.mark.parametrize(
    ("expected", "holds", "fails"),
    [
        (1, [1], [True, 1.0, "1", None, 2]),
        (True, [True], [1, "true", False, None]),
        (1.5, [1.5], [1, "1.5"]),
        ("a", ["a"], ["b", None, ["a"]]),
        (None, [None], [0, "", False]),
    ],
)
@pytest.mark.parametrize("operator", ["equals", "not_equals"])
def test_listed_condition_compares_json_values(
    expected: Any, holds: list[Any], fails: list[Any], operator: str, tmp_path: Path
) -> None:
    """Attune compares JSON: a truth value is not a number, and `1` is not `1.0`."""
    rule = {"ref": "p.r", "trigger_ref": "p.came", "action_ref": "p.act", "action_params": {"crate": "c"},
            "conditions": [{"field": "n", "operator": operator, "value": expected}]}  # fmt: skip
    project, _ = imported(tmp_path, rules__r=rule, triggers__came={"ref": "p.came"})
    when = project.rules["r"]["when"]
    for value in holds + fails:
        held = evaluate(f"{{{{ {when} }}}}", payload={"n": value})
        assert held is ((value in holds and type(value) is type(expected)) is (operator == "equals")), value


def test_items_that_are_no_list_are_one_item(tmp_path: Path) -> None:
    tasks = [
        {"name": "t", "action": "p.act", "with_items": "{{ parameters.c }}", "input": {"crate": "{{ item }}"}}
    ]
    flow, _, _ = flow_of(tmp_path, tasks, {"c": {"required": True}})
    for given in ("x", ["x", "y"]):
        assert inputs(flow, {"c": given}) == {"t": {"crate": "x"}}, "one at a time"


@pytest.mark.parametrize(
    ("tasks", "subject"),
    [
        (
            [{"name": "a", "action": "core.noop", "delay": 5}],
            "delay of task a",
        ),
        (
            [{"name": "a", "action": "p.act", "with_items": "{{ [1] }}", "input": {"crate": "c"},
              "next": [{"do": ["b"]}]}, {"name": "b", "action": "core.noop"}],
            "in Attune the last ended item decides",
        ),
        (
            [{"name": "a", "action": "core.noop", "next": [{"do": ["c"]}]},
             {"name": "b", "action": "core.noop", "next": [{"do": ["c"]}]},
             {"name": "c", "action": "core.noop", "join": 2}],
            "c also joins a branch that leads to it after a failure",
        ),
        (
            [{"name": "a", "action": "core.noop",
              "next": [{"when": "{{ succeeded() }}", "publish": [{"x": 1}]},
                       {"when": "{{ workflow.x == 1 }}", "do": ["b"]}]}, {"name": "b", "action": "core.noop"}],
            "a transition of task a reads x, which an earlier transition publishes",
        ),
    ],
)  # fmt: skip
def test_difference_to_the_scheduler_is_a_gap(tasks: Any, subject: str, tmp_path: Path) -> None:
    _, project, report = flow_of(tmp_path, tasks, vars={"x": 0})
    assert subject in lines(report)
    assert report.mapped["workflows"] == 0
    assert "delay" not in str(project.workflows)


def test_parameters_of_the_workflow_file_are_used_without_those_of_the_action(tmp_path: Path) -> None:
    own = {"n": {"type": "integer", "required": True}}
    project, report = imported(
        tmp_path,
        actions__flow=FLOW,
        actions__workflows__flow={
            "version": "1",
            "parameters": own,
            "tasks": [{"name": "t", "action": "core.noop"}],
        },
    )
    assert project.workflows["flow"]["parameters"] == own
    assert report.mapped["workflows"] == 1, lines(report)


def test_second_action_of_a_workflow_file_has_its_gaps_too(tmp_path: Path) -> None:
    graph = {"version": "1", "tasks": [{"name": "a", "action": "core.noop", "next": [{"do": ["b"], "colour": "red"}]},
                                       {"name": "b", "action": "core.noop"}]}  # fmt: skip
    _, report = imported(
        tmp_path, actions__flow=FLOW, actions__twin={**FLOW, "ref": "p.twin"}, actions__workflows__flow=graph
    )
    assert "colour of a transition of task a" in lines(report)
    assert (report.found["workflows"], report.mapped["workflows"]) == (2, 0)


def test_program_gets_the_parameters_that_a_task_passes(tmp_path: Path) -> None:
    """The program of an action gets the JSON on its standard input that Attune gives it."""
    flow, _, _ = flow_of(
        tmp_path, [{"name": "t", "action": "p.act"}], {"crate": {"type": "string", "required": True}}
    )
    given = json.dumps(inputs(flow, {"crate": "x"})["t"])
    done = subprocess.run(
        ["sh", str(tmp_path / "actions/act.sh")], input=given, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {"crate": "x"}


def test_task_of_another_pack_takes_its_input(tmp_path: Path) -> None:
    tasks = [{"name": "t", "action": "slack.post", "input": {"text": "x"}}]
    flow, _, report = flow_of(tmp_path, tasks)
    assert inputs(flow, {}) == {"t": {"text": "x"}}
    assert report.applied["workflows"] == 1, lines(report)


@pytest.mark.parametrize("path", ["workflow.late", "task.b.id", "task.b.data.id.deep"])
def test_output_without_a_value_is_null(path: str, tmp_path: Path) -> None:
    """Attune leaves out a key of the output whose expression fails, and the workflow completes."""
    tasks = [
        {"name": "a", "action": "p.act", "input": {"crate": "c"},
         "next": [{"when": "{{ succeeded() and result().far == true }}", "do": ["b"]}]},
        {"name": "b", "action": "p.act", "input": {"crate": "c"},
         "next": [{"when": "{{ succeeded() }}", "publish": [{"late": "{{ result().id }}"}]}]},
    ]  # fmt: skip
    flow, _, report = flow_of(tmp_path, tasks, output_map={"x": f"{{{{ {path} }}}}", "y": "plain"})
    world = MemoryWorkflow(flow, {}).begin()
    world.finish(("a", {"far": False}))
    assert world.final is not None
    assert (world.final.status, world.final.output) == ("completed", {"x": None, "y": "plain"})
    assert f"the output x, {{{{ {path} }}}}: Attune omits it if it has no value" in lines(report)
    world = MemoryWorkflow(flow, {}).begin()
    world.finish(("a", {"far": True}))
    world.finish(("b", {"id": 3}))
    assert world.final is not None
    assert world.final.output == {"x": 3 if "deep" not in path else None, "y": "plain"}
    assert report.mapped["workflows"] == 1, lines(report)


def test_output_that_may_fail_is_a_gap(tmp_path: Path) -> None:
    tasks = [{"name": "a", "action": "p.act", "input": {"crate": "c"}}]
    _, _, report = flow_of(tmp_path, tasks, output_map={"x": "{{ task.a.id + 1 }}"})
    assert "the output x, {{ task.a.id + 1 }}: Attune omits it if it fails" in lines(report)
    assert report.mapped["workflows"] == 0
