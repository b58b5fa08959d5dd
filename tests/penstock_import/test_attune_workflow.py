"""Workflows of Attune take the ways here that its scheduler takes, or the difference is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.language.terms.sources import Source
from penstock.language.workflows.serialization import from_value
from penstock.testing.memory_workflow import MemoryWorkflow
from penstock_import.attune import AttunePack
from penstock_import.report import Report

ACTION = "ref: p.act\nlabel: Act\nrunner_type: shell\nentry_point: act.sh\noutput_format: json\n"
FAILED = {"type": "ValueError", "message": "it broke"}


def imported(
    folder: Path, flow: dict[str, Any], parameters: dict[str, Any] | None = None
) -> tuple[Any, Report]:
    """Return the workflow `p.flow` and the report of an import."""
    head = {
        "ref": "p.flow",
        "label": "Flow",
        "workflow_file": "workflows/flow.yaml",
        "parameters": parameters or {},
    }
    for name, text in {
        "pack.yaml": "ref: p\nlabel: P\n",
        "actions/act.yaml": ACTION,
        "actions/act.sh": "echo '{}'\n",
        "actions/flow.yaml": yaml.safe_dump(head),
        "actions/workflows/flow.yaml": yaml.safe_dump(flow, sort_keys=False),
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    pack = AttunePack(folder)
    body = pack.mapped().workflows["flow"]
    return from_value({"workflow": "p.flow", **body}, Source("x", 1)), pack.report


def gaps(report: Report) -> str:
    return "\n".join(gap.what for gap in report.gaps)


def task(name: str, *ways: Any, **options: Any) -> dict[str, Any]:
    """Return a task that runs `p.act`, with its transitions."""
    return {"name": name, "action": "p.act", **({"next": list(ways)} if ways else {}), **options}


def way(when: str | None, *targets: str, **published: Any) -> dict[str, Any]:
    transition: dict[str, Any] = {"do": list(targets)} if targets else {}
    transition |= {"when": f"{{{{ {when} }}}}"} if when else {}
    return transition | ({"publish": [published]} if published else {})


@pytest.mark.parametrize(
    ("end", "runs"),
    [
        (("a", {"x": 1}), "done"),
        (("a", "failed", FAILED), "mourn"),
        (("a", "timeout", {"type": "TimeoutError", "message": "late"}), "wait"),
    ],
)
def test_failed_leaves_out_timeouts(end: Any, runs: str, tmp_path: Path) -> None:
    ways = [way("succeeded()", "done"), way("failed()", "mourn"), way("timed_out()", "wait")]
    flow, _ = imported(tmp_path, {"tasks": [task("a", *ways), task("done"), task("mourn"), task("wait")]})
    world = MemoryWorkflow(flow, {}).begin()
    world.finish(end)
    assert [name for name, _ in world.open] == [runs]
    world.finish((runs, {}))
    assert world.final is not None
    assert world.final.status == "completed"


@pytest.mark.parametrize("when", [None, "parameters.go == 'x'"])
def test_transition_after_any_end_handles_a_failure(when: str | None, tmp_path: Path) -> None:
    flow, _ = imported(
        tmp_path,
        {"tasks": [task("a", way(when, "b")), task("b")]},
        {"go": {"type": "string", "required": True}},
    )
    ends: tuple[tuple[Any, ...], ...] = (("a", {}), ("a", "failed", FAILED))
    for end in ends:
        world = MemoryWorkflow(flow, {"go": "x"}).begin()
        world.finish(end)
        world.finish(("b", {}))
        assert world.final is not None
        assert world.final.status == "completed", end


@pytest.mark.parametrize(
    "when",
    [
        None,
        "parameters.go == 'x'",
        "not succeeded()",
        "not failed()",
        "not succeeded() and not failed()",
        "failed()",
        "timed_out() or not succeeded()",
    ],
)
def test_cancelled_task_leads_nowhere(when: str | None, tmp_path: Path) -> None:
    """Attune stops to look at transitions once a task of the workflow was cancelled."""
    go = {"go": {"type": "string", "required": True}}
    flow, _ = imported(tmp_path, {"tasks": [task("a", way(when, "b")), task("b")]}, go)
    world = MemoryWorkflow(flow, {"go": "x"}).begin()
    world.finish(("a", "cancelled", {"type": "Cancelled", "message": "by hand"}))
    assert world.final is not None
    assert world.final.status == "failed"
    assert world.statuses["b"] == "skipped"


def test_transition_that_only_publishes_handles_no_failure(tmp_path: Path) -> None:
    flow, report = imported(tmp_path, {"vars": {"x": 0}, "tasks": [task("a", way("failed()", x=1))]})
    world = MemoryWorkflow(flow, {}).begin()
    world.finish(("a", "failed", FAILED))
    assert world.final is not None
    assert world.final.status == "failed"
    assert "publishes after a failure and leads nowhere" in gaps(report)


def test_older_words_are_left_out_beside_next(tmp_path: Path) -> None:
    flow, report = imported(
        tmp_path,
        {"tasks": [task("a", way("succeeded()", "b"), on_failure="c"), task("b"), task("c", join=1)]},
    )
    assert "beside `next`, which Attune ignores" in gaps(report)
    assert [transition.do for transition in flow.tasks[0].next] == [("b",)]


def test_older_words_are_read_where_there_is_no_next(tmp_path: Path) -> None:
    tasks = [task("a", on_success="b", publish=[{"x": "{{ result().data.size }}"}]), task("b")]
    flow, _ = imported(tmp_path, {"vars": {"x": 0}, "tasks": tasks, "output_map": {"x": "{{ workflow.x }}"}})
    world = MemoryWorkflow(flow, {}).begin()
    world.finish(("a", {"size": 3}))
    world.finish(("b", {}))
    assert world.final is not None
    assert world.final.output == {"x": 3}


def test_branches_of_a_decision_become_transitions(tmp_path: Path) -> None:
    decision = [{"when": "{{ result().n > 1 }}", "next": "b"}, {"when": "{{ result().n <= 1 }}", "next": "c"}]
    flow, _ = imported(tmp_path, {"tasks": [task("a", decision=decision), task("b"), task("c")]})
    world = MemoryWorkflow(flow, {}).begin()
    world.finish(("a", {"n": 5}))
    assert [name for name, _ in world.open] == ["b"]


def test_missing_parameter_is_null_and_null_is_the_default(tmp_path: Path) -> None:
    parameters = {"n": {"type": "integer", "default": 4}, "m": {"type": "string"}}
    flow, report = imported(
        tmp_path,
        {
            "tasks": [task("a", input={"x": 1})],
            "output_map": {"n": "{{ parameters.n }}", "m": "{{ parameters.m }}"},
        },
        parameters,
    )
    world = MemoryWorkflow(flow, {"n": None, "m": None}).begin()
    world.finish(("a", {}))
    assert world.final is not None
    assert world.final.output == {"n": 4, "m": None}
    assert flow.parameters["properties"]["m"]["default"] is None
    assert "parameters" not in gaps(report)


@pytest.mark.parametrize(
    ("tasks", "subject"),
    [
        (
            [task("a", way(None, "c")), task("b", way(None, "c")), task("c")],
            "c may be reached several times and has no join",
        ),
        (
            [task("a", way("succeeded()", "c"), way("failed()", "d")), task("b", way("succeeded()", "c")),
             task("c", join=2), task("d")],
            "c joins branches that may lead elsewhere",
        ),
        (
            [task("a", way("succeeded()", x=1)), task("b", way("succeeded()", x=2))],
            "a and b run side by side and publish x",
        ),
        (
            [task("a", way("succeeded()", x=1)), task("b", input={"n": "{{ workflow.x }}"})],
            "b reads x, which a may publish at the same time",
        ),
        ([task("a", way("failed()", "b", e="{{ result().error }}")), task("b")], "the result of a failed task"),
        ([task("a", way("succeeded()", "b", e="{{ result() }}")), task("b")], "a whole result"),
        ([task("a", way("succeeded()", "b"), timeout="{{ parameters.t }}"), task("b")], "the timeout of"),
    ],
)  # fmt: skip
def test_difference_of_attune_is_named(tasks: Any, subject: str, tmp_path: Path) -> None:
    _, report = imported(tmp_path, {"vars": {"x": 0}, "tasks": tasks})
    assert subject in gaps(report)


@pytest.mark.parametrize(
    "tasks",
    [
        [
            task("a", way("succeeded()", "c"), way("failed()", "b")),
            task("b", way("succeeded()", "c")),
            task("c"),
        ],
        [
            task("a", way("failed()", "c"), way("timed_out()", "b")),
            task("b", way("succeeded()", "c")),
            task("c"),
        ],
        [task("a", way("succeeded()", "c")), task("b", way("succeeded()", "c")), task("c", join=2)],
    ],
)
def test_ways_that_exclude_each_other_are_no_gap(tasks: Any, tmp_path: Path) -> None:
    _, report = imported(tmp_path, {"tasks": tasks})
    assert "join" not in gaps(report)
