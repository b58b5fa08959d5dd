"""A workflow that reads what a failed task gave does so here, too. The expectations are what Orquesta's own conductor did
with these workflows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.language.terms.sources import Source
from penstock.language.workflows.serialization import from_value
from penstock.testing import Simulation
from penstock.testing.memory_workflow import MemoryWorkflow
from penstock_import.applied import keep_applicable
from penstock_import.report import Report
from penstock_import.shell_actions import FUNCTIONS
from penstock_import.stackstorm import StackStormPack

ANY_OUTCOME = {"publish": [{"code": "<% result().return_code %>"}], "do": "after"}
AFTER_SUCCESS = {"when": "<% succeeded() %>", "do": "after"}
AFTER_FAILURE = {"when": "<% failed() %>", "publish": [{"code": "<% result().stdout %>"}], "do": "after"}
AFTER_SEVEN = {
    "when": "<% result().return_code = 7 %>",
    "publish": [{"code": "<% result().stdout %>"}],
    "do": "other",
}

NEXT = {"action": "core.local", "input": {"cmd": "true"}}


def imported(
    folder: Path, workflow: dict[str, Any], parameters: dict[str, Any] | None = None
) -> tuple[Simulation, Report]:
    """Return a simulation of a pack with one workflow, `depot.flow`, and the report of its import."""
    pack = folder / "depot"
    (pack / "actions" / "workflows").mkdir(parents=True)
    head: dict[str, Any] = {"name": "flow", "runner_type": "orquesta", "entry_point": "workflows/flow.yaml"}
    head |= {"parameters": parameters} if parameters else {}
    (pack / "pack.yaml").write_text(
        "ref: depot\nname: depot\ndescription: Pens.\nversion: 1.0.0\nauthor: Pat\n"
    )
    (pack / "actions" / "flow.yaml").write_text(yaml.safe_dump(head))
    (pack / "actions" / "workflows" / "flow.yaml").write_text(yaml.safe_dump(workflow, sort_keys=False))
    source = StackStormPack(pack)
    project = source.mapped()
    keep_applicable(project, source.report)
    project.write(folder / "ours", "", source.report)
    return Simulation(str(folder / "ours")), source.report


@pytest.mark.parametrize(
    ("command", "steps", "expected", "code"),
    [
        ("echo hi", [ANY_OUTCOME], "completed", 0),
        ("echo hi; exit 3", [ANY_OUTCOME], "completed", 3),
        ("echo hi; exit 3", [AFTER_FAILURE], "completed", "hi"),
        ("echo hi; exit 3", [AFTER_FAILURE | {"do": "noop"}], "completed", "hi"),
        ("echo hi; exit 3", [AFTER_FAILURE | {"do": "continue"}], "failed", None),
        ("echo hi; exit 3", [AFTER_SUCCESS, AFTER_SEVEN], "failed", None),
        ("echo hi; exit 7", [AFTER_SUCCESS, AFTER_SEVEN], "completed", "hi"),
        ("echo hi", [AFTER_SUCCESS, AFTER_SEVEN], "completed", "none yet"),
        ("echo hi; exit 7", [{"publish": [{"code": "<% result().stdout %>"}]}], "failed", None),
    ],
)
def test_result_of_failed_task_is_read(
    tmp_path: Path, command: str, steps: list[dict[str, Any]], expected: str, code: Any
) -> None:
    workflow = {
        "vars": [{"code": "none yet"}],
        "tasks": {
            "first": {"action": "core.local", "input": {"cmd": command}, "next": steps},
            **{name: NEXT for name in ("after", "other") if name in str(steps)},
        },
        "output": [{"code": "<% ctx().code %>"}],
    }
    simulation, report = imported(tmp_path, workflow)
    is_lost = any("publishes code and leads nowhere after a failure" in gap.what for gap in report.gaps)
    assert is_lost == ("continue" in str(steps)), report.gaps
    assert report.mapped["workflows"] == (0 if is_lost else 1), report.gaps
    run = simulation.run("depot.flow")
    assert run.status == expected
    assert expected == "failed" or run.result == {"code": code}


def test_later_task_reads_result_of_failed_task(tmp_path: Path) -> None:
    workflow = {
        "tasks": {
            "first": {
                "action": "core.local",
                "input": {"cmd": "echo 5; exit 3"},
                "next": [{"when": "<% failed() %>", "do": "after"}],
            },
            "after": {
                "action": "core.local",
                "input": {"cmd": "echo <% task(first).result.return_code %>"},
            },
        },
        "output": [{"said": "<% task(after).result.stdout %>"}],
    }
    simulation, report = imported(tmp_path, workflow)
    assert report.mapped["workflows"] == 1, report.gaps
    assert simulation.run("depot.flow").result == {"said": 3}


@pytest.mark.parametrize("seconds", [0.2, "<% ctx().seconds %>"])
def test_command_over_its_timeout_has_failed(tmp_path: Path, seconds: float | str) -> None:
    """Orquesta makes the status `failed` of an action that timed out while it ran."""
    workflow = {
        "input": [{"seconds": 60}],
        "tasks": {
            "first": {
                "action": "core.local",
                "input": {"cmd": "sleep 60", "timeout": seconds},
                "next": [
                    {"when": "<% failed() %>", "do": "after"},
                    {"when": "<% succeeded() %>", "do": "noop"},
                ],
            },
            "after": {"action": "core.local", "input": {"cmd": "true"}},
        },
    }
    simulation, report = imported(tmp_path, workflow, {"seconds": {"type": "number"}})
    assert report.mapped["workflows"] == 1, report.gaps
    if seconds == 0.2:
        simulation.fake("depot.core_local", takes=61, times=1)  # the clock of a simulation ends it
    run = simulation.run("depot.flow", seconds=0.2)
    assert (run.status, run.tasks["after"]) == ("completed", "completed")


def test_python_action_that_returns_false_has_failed() -> None:
    """StackStorm's runner reads a pair as whether the action succeeded and its result."""
    scope: dict[str, Any] = {}
    exec(FUNCTIONS["ActionFailed"] + FUNCTIONS["python_result"] + FUNCTIONS["kept"], scope)
    python_result = scope["python_result"]
    assert python_result([1, 2]) == {"result": [1, 2], "exit_code": 0, "stdout": "", "stderr": ""}
    assert python_result((True, 5))["result"] == 5
    failed = scope["kept"](lambda: python_result((False, {"why": "no"})), {})
    assert (failed["status"], failed["result"]["result"]) == ("failed", {"why": "no"})
    with pytest.raises(TypeError, match="True or False"):
        python_result(("no", 5))


def test_computed_concurrency_of_nothing_is_one(tmp_path: Path) -> None:
    workflow = {
        "input": [{"several": 0}],
        "tasks": {
            "each": {
                "with": {"items": "<% [1, 2] %>", "concurrency": "<% ctx().several %>"},
                "action": "core.local",
                "input": {"cmd": "echo <% item() %>"},
            }
        },
    }
    simulation, _ = imported(tmp_path, workflow)
    assert simulation.run("depot.flow").status == "completed"


def flow_of(folder: Path) -> MemoryWorkflow:
    """Return a run of the workflow that `imported` made in this folder."""
    body = yaml.safe_load((folder / "ours" / "workflows.yaml").read_text())["flow"]
    return MemoryWorkflow(from_value({"workflow": "depot.flow", **body}, Source("x", 1)), {}).begin()


@pytest.mark.parametrize(
    ("concurrency", "failing", "started"),
    [(1, {0}, 1), (1, {1}, 2), (0, {0}, 1), (2, {0}, 4), (2, {1}, 4), (2, {0, 1}, 4), (3, {0, 1, 2}, 4)],
)
def test_items_start_while_an_item_runs(
    tmp_path: Path, concurrency: int, failing: set[int], started: int
) -> None:
    """Orquesta starts further items after a failed one while an item runs: with a concurrency of 1 none does."""
    items = {"items": "<% [1, 2, 3, 4] %>", "concurrency": concurrency}
    _, report = imported(tmp_path, {"tasks": {"each": NEXT | {"with": items}}})
    assert report.mapped["workflows"] == 1, report.gaps
    world = flow_of(tmp_path)
    while world.open:
        key = min(world.open)
        world.finish((key, "failed", {}) if key[1] in failing else (key, {"return_code": 0}))
    assert len(world.started) == started
    assert world.final is not None
    assert world.final.status == "failed"


def test_computed_concurrency_is_named_where_an_item_can_fail(tmp_path: Path) -> None:
    """With a concurrency of 1 Orquesta starts no item after a failed one, and with 2 it starts all."""
    items = {"items": "<% [1, 2] %>", "concurrency": "<% ctx(n) %>"}
    _, report = imported(tmp_path, {"vars": [{"n": 1}], "tasks": {"each": NEXT | {"with": items}}})
    assert [gap.what for gap in report.gaps] == ["the concurrency of each is computed: <% ctx(n) %>"]
    assert report.mapped["workflows"] == 0


@pytest.mark.parametrize("step", [{"do": "after"}, {"when": "<% ctx().go %>", "do": "after"}])
def test_cancelled_task_leads_to_nothing(tmp_path: Path, step: dict[str, Any]) -> None:
    """A task that is cancelled cancels its workflow in StackStorm, so that no transition of it is taken."""
    workflow = {"vars": [{"go": True}], "tasks": {"first": {**NEXT, "next": [step]}, "after": NEXT}}
    imported(tmp_path, workflow)
    ours = yaml.safe_load((tmp_path / "ours" / "workflows.yaml").read_text())["flow"]
    conditions = [taken["when"] for taken in ours["tasks"]["first"]["next"]]
    assert [text.split(" and (")[0] for text in conditions] == [
        "succeeded()",
        "not succeeded() and not cancelled()",
    ]


@pytest.mark.parametrize(
    ("first", "second", "is_gap"),
    [
        ("<% ctx().n = 'a' or ctx().n = 'b' %>", "<% ctx().n = 'c' or ctx().n = 'd' %>", False),
        ("<% ctx().n = 'a' or ctx().n = 'b' %>", "<% not (ctx().n = 'b' or ctx().n = 'a') %>", False),
        ("<% ctx().n = 'a' %>", "<% ctx().n != 'a' %>", False),
        ("<% ctx().n = 'a' or ctx().n = 'b' %>", "<% ctx().n = 'b' or ctx().n = 'd' %>", True),
        ("<% ctx().n = 'a' or ctx().n = 'b' %>", "<% ctx().n != 'a' %>", True),
        ("<% ctx().n = 'a' or ctx().m = 'b' %>", "<% ctx().n = 'c' or ctx().m = 'd' %>", True),
        ("<% ctx().n = 1 %>", "<% ctx().n = true %>", True),
        ("<% ctx().n %>", "<% ctx().n = 'a' %>", True),
        ("{{ ctx().n }}", "{{ ctx().n == 'a' }}", True),
        ("<% ctx().n %>", "<% not ctx().n %>", False),
        ("<% ctx().n = 1 %>", "<% ctx().n = 1.0 %>", True),
        ("{{ ctx().n == 'a' or ctx().n == 'b' }}", "{{ ctx().n == 'c' }}", False),
        ("{{ ctx().n == 'a' or ctx().n == 'b' }}", "{{ ctx().n == 'b' }}", True),
    ],
)
def test_task_that_two_transitions_reach_is_gap_unless_they_exclude_each_other(
    tmp_path: Path, first: str, second: str, is_gap: bool
) -> None:
    steps = [{"when": first, "do": "one"}, {"when": second, "do": "two"}]
    tasks = {"start": {"action": "core.noop", "next": steps}} | {
        name: {"action": "core.noop", "next": [{"do": "last"}]} for name in ("one", "two")
    }
    workflow = {"vars": [{"n": "a"}, {"m": "b"}], "tasks": tasks | {"last": {"action": "core.noop"}}}
    _, report = imported(tmp_path, workflow)
    assert any("may be reached several times" in gap.what for gap in report.gaps) == is_gap, report.gaps


def output_in_error(error: dict[str, Any] | None) -> Any:
    assert error is not None
    return json.loads(str(error["message"]).partition("its output: ")[2])


@pytest.mark.parametrize(
    ("target", "output", "expected"),
    [
        ("fail", {"said": "<% ctx(said) %>"}, {"said": "no"}),
        ("fail", {"said": "<% ctx(said) %>", "all": ["<% ctx(other) %>", 1]}, {"said": "no", "all": ["", 1]}),
        ("fail", {"said": "{{ ctx().said }}!", "again": "<% ctx(said) %>"}, {"said": "no!", "again": "no!"}),
        ("last", {"said": "<% ctx(said) %>"}, None),
    ],
)
def test_error_of_failed_workflow_has_its_output(
    tmp_path: Path, target: str, output: dict[str, Any], expected: Any
) -> None:
    tasks = {
        "start": {"action": "core.noop", "next": [{"publish": [{"said": "no"}], "do": target}]},
        "last": {"action": "core.noop"},
    }
    simulation, report = imported(
        tmp_path,
        {
            "vars": [{"said": ""}, {"other": ""}],
            "tasks": tasks,
            "output": [{key: value} for key, value in output.items()],
        },
    )
    assert report.mapped["workflows"] == 1, report.gaps
    run = simulation.run("depot.flow")
    assert run.status == ("completed" if expected is None else "failed")
    if expected is not None:
        assert output_in_error(run.error) == expected


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"said": "<% ctx(said) %>", "user": "<% ctx(user) %>"}, {"said": "no"}),
        ({"user": "{{ ctx('user').name }}", "said": "{{ ctx('said') }}"}, {"said": "no"}),
        ({"text": "by <% ctx(user) %>", "said": "<% ctx(said) %>", "n": 1}, {"said": "no", "n": 1}),
        ({"user": ["<% ctx(user) %>"], "said": "<% ctx(said) %>"}, {"said": "no"}),
        ({"part": "<% ctx(said).part %>", "said": "<% ctx(said) %>"}, {"said": "no"}),
        (
            {"user": "{{ ctx().user | default('none') }}", "said": "<% ctx(said) %>"},
            {"user": "none", "said": "no"},
        ),
        ({"user": "{{ ctx('user') if ctx('said') == 'yes' else 'x' }}"}, {"user": "x"}),
        ({"user": "<% ctx(user) %>"}, {}),
    ],
)
def test_output_with_a_missing_value_is_left_out_of_the_error(
    tmp_path: Path, output: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Orquesta evaluates each output by itself, and gives those without an error."""
    steps = [
        {"when": "<% succeeded() %>", "publish": [{"user": "<% result().stdout %>"}], "do": "after"},
        {"when": "<% failed() %>", "publish": [{"said": "no"}], "do": "fail"},
    ]
    first = {"action": "core.local", "input": {"cmd": "exit 3"}, "next": steps}
    workflow = {
        "vars": [{"said": ""}],
        "tasks": {"first": first, "after": {"action": "core.noop"}},
        "output": [{key: value} for key, value in output.items()],
    }
    simulation, report = imported(tmp_path, workflow)
    assert report.mapped["workflows"] == 1, report.gaps
    run = simulation.run("depot.flow")
    assert run.status == "failed"
    assert output_in_error(run.error) == expected


@pytest.mark.parametrize(
    ("command", "when", "expected"),
    [
        ("echo 4", "<% succeeded() and result().stdout = 4 %>", {"said": "no", "code": 0}),
        ("exit 3", "<% failed() %>", {"said": "no", "code": 3}),
        ("echo 4", "<% succeeded() %>", {"said": "no", "code": 0}),
    ],
)
def test_error_of_failed_workflow_has_results_of_tasks(
    tmp_path: Path, command: str, when: str, expected: dict[str, Any]
) -> None:
    step = {"when": when, "publish": [{"said": "no"}], "do": "fail"}
    first = {"action": "core.local", "input": {"cmd": command}, "next": [step]}
    workflow = {
        "vars": [{"said": ""}],
        "tasks": {"start": first},
        "output": [{"said": "<% ctx(said) %>"}, {"code": "<% task(start).result.return_code %>"}],
    }
    simulation, report = imported(tmp_path, workflow)
    run = simulation.run("depot.flow")
    assert run.status == "failed"
    if report.mapped["workflows"]:
        assert output_in_error(run.error) == expected
    else:
        assert when == "<% failed() %>"
        assert any("publishes said and fails" in gap.what for gap in report.gaps), report.gaps


def test_output_of_a_task_that_may_not_have_run_is_named(tmp_path: Path) -> None:
    step = {"publish": [{"said": "no"}], "do": "fail"}
    run = {"action": "core.local", "input": {"cmd": "true"}}
    workflow = {
        "vars": [{"said": ""}],
        "tasks": {"start": run | {"next": [step]}, "other": run},
        "output": [{"said": "<% ctx(said) %>"}, {"code": "<% task(other).result.return_code %>"}],
    }
    _, report = imported(tmp_path, workflow)
    assert any("publishes said and fails" in gap.what for gap in report.gaps), report.gaps


ENDS = {"when": "<% failed() %>", "publish": [{"said": "no"}, {"why": "<% result().stderr %>"}]}


@pytest.mark.parametrize(
    ("steps", "is_lost"),
    [
        ([ENDS], True),
        ([{"when": "<% succeeded() %>", "do": "after"}, ENDS], True),
        ([ENDS | {"when": "<% completed() %>"}], True),
        ([ENDS | {"do": "continue"}], True),
        ([ENDS | {"do": "after"}], False),
        ([ENDS | {"do": "noop"}], False),
        ([ENDS | {"publish": [{"other": "no"}]}], False),
        ([{"publish": [{"said": "yes"}]}], False),
    ],
)
def test_value_for_a_failed_output_is_named(
    tmp_path: Path, steps: list[dict[str, Any]], is_lost: bool
) -> None:
    """Orquesta's conductor gives the output of a failed workflow. One line says so of each workflow, and a gap of each
    transition that is written for it."""
    tasks = {"first": {"action": "core.local", "input": {"cmd": "echo why >&2; exit 3"}, "next": steps}}
    workflow = {
        "vars": [{"said": ""}, {"why": ""}, {"other": ""}],
        "tasks": tasks | ({"after": NEXT} if "after" in str(steps) else {}),
        "output": [{"said": "<% ctx(said) %>"}, {"why": "<% ctx(why) %>"}],
    }
    simulation, report = imported(tmp_path, workflow)
    assert (
        any("publishes said and leads nowhere after a failure" in gap.what for gap in report.gaps) == is_lost
    )
    assert any(
        "the output of the workflow flow, which StackStorm also returns after a failure" in gap.what
        for gap in report.gaps
    )
    assert report.mapped["workflows"] == (0 if is_lost else 1), report.gaps
    run = simulation.run("depot.flow")
    if is_lost:
        assert run.status == "failed"
        assert "exit code 3: why" in str(run.error), "the error of the task itself"


@pytest.mark.parametrize(
    ("supplied", "expected"),
    [
        ({}, ["shed", 2, "low", "none"]),
        ({"word": None, "count": None, "level": None, "joined": None}, [None, None, "low", None]),
        ({"word": "ink", "count": 1, "level": "high", "joined": "x"}, ["ink", 1, "high", "x"]),
    ],
)
def test_default_of_an_input_is_not_for_null(
    tmp_path: Path, supplied: dict[str, Any], expected: list[Any]
) -> None:
    """Orquesta's conductor gives the default of an input if the input is missing. StackStorm gives the default of a
    parameter for null, too."""
    parameters = {
        "word": {"type": "string"},
        "count": {"type": "integer", "enum": [1, 2]},
        "level": {"type": "string", "default": "low"},
        "bare": {"type": "string", "default": "none"},
        "joined": {"type": "string"},
    }
    inputs = ["bare", {"word": "shed"}, {"count": 2}, {"level": "high"}, {"joined": "<% ctx(bare) %>"}]
    workflow = {
        "input": inputs,
        "tasks": {"first": {"action": "core.noop"}},
        "output": [{"all": [f"<% ctx({name}) %>" for name in ("word", "count", "level", "joined")]}],
    }
    simulation, report = imported(tmp_path, workflow, parameters)
    assert report.mapped["workflows"] == 1, report.gaps
    assert simulation.run("depot.flow", supplied).result == {"all": expected}


def is_fail_fast(folder: Path) -> bool:
    """Return whether the workflow that `imported` made in this folder has `fail_fast`."""
    return bool(yaml.safe_load((folder / "ours" / "workflows.yaml").read_text())["flow"].get("fail_fast"))


@pytest.mark.parametrize(
    ("next_of_first", "subject", "fails_fast"),
    [
        ([], None, False),
        (
            [{"publish": [{"x": 1}]}],
            "x is published by first and by second in a workflow with branches side by side",
            False,
        ),
        ([{"do": "third"}], None, True),
    ],
)
def test_branches_run_side_by_side(
    tmp_path: Path, next_of_first: list[dict[str, Any]], subject: str | None, fails_fast: bool
) -> None:
    """Branches stay branches: none waits for another one. Where their order would tell, a gap does."""
    run = {"action": "core.local", "input": {"cmd": "true"}}
    publishes = {"next": [{"publish": [{"x": 2}]}]} if "publish" in str(next_of_first) else {}
    tasks: dict[str, Any] = {
        "first": run | ({"next": next_of_first} if next_of_first else {}),
        "second": run | publishes,
    }
    tasks |= {"third": run} if "third" in str(next_of_first) else {}
    simulation, report = imported(tmp_path, {"vars": [{"x": 0}], "tasks": tasks})
    for name in ("first", "second"):
        simulation.fake(name, returns={"return_code": 0}, takes=60)
    begin = simulation.now
    run_of_flow = simulation.run("depot.flow")
    assert run_of_flow.status == "completed"
    assert (simulation.now - begin).total_seconds() < 120
    assert [gap.what for gap in report.gaps if "side by side" in gap.what] == ([subject] if subject else [])
    assert is_fail_fast(tmp_path) == fails_fast


CHAIN: dict[str, Any] = {
    "first": NEXT | {"next": [{"when": "<% succeeded() %>", "do": "second"}]},
    "second": NEXT,
}


@pytest.mark.parametrize(
    ("beside", "fails_fast"),
    [
        ({}, False),
        ({"next": [{"when": "<% succeeded() %>", "publish": [{"x": "a text"}]}]}, False),
        ({"next": [{"publish": [{"x": "<% ctx().missing %>"}]}]}, True),
        ({"next": [{"when": "<% succeeded() and ctx().missing %>", "do": "noop"}]}, True),
        ({"input": {"y": "<% ctx().missing %>"}}, True),
        ({"delay": 1}, True),
        ({"next": [{"do": "fail"}]}, True),
    ],
)
def test_noop_that_evaluates_nothing_cannot_fail(
    tmp_path: Path, beside: dict[str, Any], fails_fast: bool
) -> None:
    """A failure beside a chain of tasks stops the chain. A `core.noop` can only fail by an expression, or by `fail`."""
    imported(tmp_path, {"vars": [{"x": 0}], "tasks": CHAIN | {"beside": {"action": "core.noop"} | beside}})
    assert is_fail_fast(tmp_path) == fails_fast


@pytest.mark.parametrize("failing", ["beside", "stops"])
def test_failure_beside_a_chain_starts_nothing_more(tmp_path: Path, failing: str) -> None:
    tasks = CHAIN | {
        "beside": NEXT,
        "stops": NEXT | {"next": [{"when": "<% failed() %>", "do": "fail"}]},
    }
    simulation, report = imported(tmp_path, {"tasks": tasks})
    assert report.mapped["workflows"] == 1, report.gaps
    simulation.fake("first", returns={"return_code": 0}, takes=60)
    for name in ("beside", "stops"):
        outcome = {"raises": RuntimeError("no")} if name == failing else {"returns": {"return_code": 0}}
        simulation.fake(name, takes=1, **outcome)
    run = simulation.run("depot.flow")
    assert run.status == "failed"
    assert run.tasks["first"] == "completed"
    assert run.tasks.get("second") not in ("completed", "running")


def test_task_beside_fail_runs_and_leads_nowhere(tmp_path: Path) -> None:
    """Orquesta runs a task that stands beside `fail`, and nothing after it."""
    tasks = CHAIN | {"opens": NEXT | {"next": [{"when": "<% failed() %>", "do": ["first", "fail"]}]}}
    simulation, report = imported(tmp_path, {"tasks": tasks})
    assert report.mapped["workflows"] == 1, report.gaps
    simulation.fake("opens", raises=RuntimeError("no"))
    simulation.fake("first", returns={"return_code": 0})
    run = simulation.run("depot.flow")
    assert (run.status, run.tasks["first"]) == ("failed", "completed")
    assert run.tasks.get("second") not in ("completed", "running")


def test_fail_keeps_a_join_from_starting(tmp_path: Path) -> None:
    """A task goes to a join and to `fail`. The join does not run after the other branch."""
    to_join = NEXT | {"next": [{"do": "joins"}]}
    tasks = {
        "opens": NEXT | {"next": [{"do": ["joins", "fail"]}]},
        "beside": to_join,
        "joins": NEXT | {"join": "all"},
    }
    simulation, _ = imported(tmp_path, {"tasks": tasks})
    simulation.fake("opens", returns={"return_code": 0}, takes=1)
    simulation.fake("beside", returns={"return_code": 0}, takes=60)
    run = simulation.run("depot.flow")
    assert (run.status, run.tasks["beside"]) == ("failed", "completed")
    assert run.tasks.get("joins") not in ("completed", "running")


@pytest.mark.parametrize(
    ("options", "subject"),
    [
        ({"retry": {"count": 2}}, "when beside fails, StackStorm does not retry first"),
        (
            {"next": [{"when": "<% succeeded() %>", "do": ["second", "fail"]}]},
            "first goes to fail and to other tasks, which StackStorm runs even after a failure of beside",
        ),
    ],
)
def test_difference_after_a_failure_is_named(tmp_path: Path, options: dict[str, Any], subject: str) -> None:
    tasks = CHAIN | {
        "first": CHAIN["first"] | options,
        "second": CHAIN["first"] | {"next": [{"do": "third"}]},
    }
    _, report = imported(tmp_path, {"tasks": tasks | {"third": NEXT, "beside": NEXT}})
    assert subject in [gap.what for gap in report.gaps]
    assert report.mapped["workflows"] == 0


@pytest.mark.parametrize(
    ("beside", "options", "subject"),
    [
        (
            {},
            {"retry": {"count": 2}},
            "opens goes to fail and to first, which StackStorm then does not retry",
        ),
        (
            {"second": NEXT | {"next": [{"do": "third"}]}, "third": NEXT, "beside": NEXT},
            {"with": {"items": "<% [1, 2] %>", "concurrency": 1}},
            "opens goes to fail and to first, whose further items StackStorm starts even then",
        ),
    ],
)
def test_part_of_a_task_beside_fail_is_named(
    tmp_path: Path, beside: dict[str, Any], options: dict[str, Any], subject: str
) -> None:
    """Orquesta runs a task that stands beside `fail`, with all of its items, and tries it no more."""
    opens = NEXT | {"next": [{"when": "<% failed() %>", "do": ["first", "fail"]}]}
    _, report = imported(tmp_path, {"tasks": {"opens": opens, "first": NEXT | options} | beside})
    assert subject in [gap.what for gap in report.gaps]
    assert report.mapped["workflows"] == 0


SAY: dict[str, Any] = {"action": "core.local", "input": {"cmd": "true"}}
ENDS_AT_NOOP = {"when": "<% failed() %>", "do": "noop"}


@pytest.mark.parametrize(("target", "may_be_missed"), [("noop", True), ("continue", False), ("fail", False)])
def test_failure_that_noop_handles_before_a_join_is_named(
    tmp_path: Path, target: str, may_be_missed: bool
) -> None:
    """The conductor goes on after `noop`, and fails the workflow at the join. Else the workflow has failed before."""
    after = {"when": "<% succeeded() %>", "do": "last"}
    tasks = {
        "first": SAY | {"next": [after, ENDS_AT_NOOP | {"do": target}]},
        "second": SAY | {"next": [after]},
        "last": SAY | {"join": "all"},
    }
    _, report = imported(tmp_path, {"tasks": tasks})
    named = any("last joins branches that may not come" in gap.what for gap in report.gaps)
    assert named is may_be_missed, report.gaps


@pytest.mark.parametrize("publishing", [{}, {"do": "continue"}])
def test_value_beside_noop_after_a_failure_is_named(tmp_path: Path, publishing: dict[str, Any]) -> None:
    """The failure takes both transitions there, so that the output has the value."""
    steps = [{"publish": [{"word": "no"}]} | publishing, ENDS_AT_NOOP]
    workflow = {
        "vars": [{"word": ""}],
        "tasks": {"first": SAY | {"next": steps}},
        "output": [{"word": "<% ctx(word) %>"}],
    }
    _, report = imported(tmp_path, workflow)
    named = "first publishes after a failure and leads nowhere, beside a transition that leads on"
    assert any(named in gap.what for gap in report.gaps), report.gaps


@pytest.mark.parametrize(("variable", "has_output"), [("word", False), ("other", True)])
def test_error_has_no_output_that_another_branch_may_change(
    tmp_path: Path, variable: str, has_output: bool
) -> None:
    tasks = {
        "first": SAY | {"next": [{"do": "fail"}]},
        "second": SAY | {"next": [{"when": "<% succeeded() %>", "publish": [{variable: "no"}]}]},
    }
    workflow = {
        "vars": [{"word": ""}, {"other": ""}],
        "tasks": tasks,
        "output": [{"word": "<% ctx(word) %>"}],
    }
    simulation, report = imported(tmp_path, workflow)
    assert report.mapped["workflows"] == 1, report.gaps
    for name, seconds in (("first", 2), ("second", 1)):
        simulation.fake(name, returns={}, takes=seconds)
    run = simulation.run("depot.flow")
    assert run.status == "failed"
    assert ("its output: " in str(run.error)) is has_output


@pytest.mark.parametrize(
    ("steps", "is_lost"),
    [
        ([{"when": "<% failed() %>", "do": "noop"}], True),
        ([{"when": "<% succeeded() and ctx(word) = 'a' %>"}], True),
        ([{"when": "<% succeeded() %>"}], False),
        ([], False),
        ([{"when": "<% ctx(word) = 'a' %>"}, {"when": "<% ctx(word) != 'a' %>"}], False),
    ],
)
def test_task_that_takes_no_transition_beside_another_is_named(
    tmp_path: Path, steps: list[dict[str, Any]], is_lost: bool
) -> None:
    """The conductor leaves the branch of such a task out of the output, unless it ends last."""
    tasks = {
        "first": SAY | {"next": [{"when": "<% succeeded() %>", "publish": [{"word": "a"}], "do": "second"}]},
        "second": SAY | ({"next": steps} if steps else {}),
        "side": SAY,
    }
    output = [{"word": "<% ctx(word) %>"}]
    _, report = imported(tmp_path, {"vars": [{"word": ""}], "tasks": tasks, "output": output})
    named = "second may take no transition, and StackStorm then leaves word of first out of the output"
    assert any(named in gap.what for gap in report.gaps) is is_lost, report.gaps
