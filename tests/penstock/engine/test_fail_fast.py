"""`fail_fast`: after a failure that no task handles, nothing more starts, and what runs ends by itself."""

from __future__ import annotations

import pytest

from penstock.engine import Plan, rerun
from penstock.errors import Conflict
from penstock.testing.memory_workflow import MemoryWorkflow as World
from tests.penstock.engine.written import run

FAST = "fail_fast: true"
BRANCHES = "a: {action: t.a}\nb: {action: t.b}\nc: {action: t.c, needs: b}"
BOOM = {"type": "Boom", "message": "no"}


def ended(world: World) -> str | None:
    return None if world.final is None else world.final.status


def test_failure_starts_no_independent_task() -> None:
    world = run(BRANCHES, FAST)
    world.finish(("a", "failed", BOOM))
    assert world.final is None
    assert not world.decision.cancel_all
    world.finish(("b", 1))
    assert set(world.started) == {("a", None), ("b", None)}
    assert world.final is not None
    assert world.final.status == "failed"
    assert world.final.error is not None
    assert world.final.error["cause"]["path"] == "a"


def test_failure_without_the_option_starts_independent_tasks() -> None:
    world = run(BRANCHES)
    world.finish(("a", "failed", BOOM)).finish(("b", 1))
    assert ("c", None) in world.started


def test_later_failures_are_named_too() -> None:
    world = run(BRANCHES, FAST)
    world.finish(("a", "failed", BOOM)).finish(("b", "failed", BOOM))
    assert world.final is not None
    assert world.final.error is not None
    assert list(world.final.error["tasks"]) == ["a", "b"]


@pytest.mark.parametrize("end", ["failed", "timeout", "cancelled", "abandoned"])
def test_each_kind_of_failure_stops_the_starts(end: str) -> None:
    world = run(BRANCHES, FAST)
    world.finish(("a", end, None)).finish(("b", 1))
    assert ("c", None) not in world.started
    assert ended(world) == "failed"


def test_allowed_failure_stops_nothing() -> None:
    world = run(BRANCHES.replace("t.a}", "t.a, allow_failure: true}"), FAST)
    world.finish(("a", "failed", BOOM)).finish(("b", 1)).finish(("c", 1))
    assert ended(world) == "completed"


def test_failure_route_stops_nothing() -> None:
    text = "a: {action: t.a, next: [{when: failed(), do: d}]}\nb: {action: t.b}\nc: {action: t.c, needs: b}\nd: {action: t.d}"
    world = run(text, FAST)
    world.finish(("a", "failed", BOOM)).finish(("b", 1))
    assert {("c", None), ("d", None)} <= set(world.started)
    world.finish(("c", 1), ("d", 1))
    assert ended(world) == "completed"


HANDLER = (
    "a: {action: t.a}\nb: {action: t.b}\nc: {action: t.c, needs: b}\n"
    "h: {action: t.h, needs: [a, b], when: {all: [all_done, {failed: a}, {success: b}]}}"
)


def test_failure_waits_for_its_handler() -> None:
    world = run(HANDLER, FAST)
    world.finish(("a", "failed", BOOM))
    assert world.state.phase == "running"
    world.finish(("b", 1))
    assert {("c", None), ("h", None)} <= set(world.started)


def test_skipped_handler_stops_the_starts() -> None:
    text = HANDLER + "\nx: {action: t.x}\ny: {action: t.y, needs: x}"
    world = run(text, FAST)
    world.finish(("a", "failed", BOOM)).finish(("b", "failed", BOOM))
    world.finish(("x", 1))
    assert ("y", None) not in world.started
    assert ended(world) == "failed"


@pytest.mark.parametrize("kind", ["skip", "set_result"])
def test_handler_ended_by_hand_stops_the_starts(kind: str) -> None:
    world = run(HANDLER, FAST)
    world.finish(("a", "failed", BOOM))
    world.command(kind, "h", None)
    world.finish(("b", 1))
    assert ("c", None) not in world.started
    assert ended(world) == "failed"


def test_transition_in_error_stops_the_starts() -> None:
    text = "a: {action: t.a, next: [{when: 1 // 0 == 1, do: d}]}\nb: {action: t.b}\nc: {action: t.c, needs: b}\nd: {action: t.d}"
    world = run(text, FAST)
    world.finish(("a", 1)).finish(("b", 1))
    assert ("c", None) not in world.started
    assert ended(world) == "failed"


def test_fan_out_starts_no_further_items() -> None:
    world = run("a: {action: t.a}\nf: {action: t.f, with_items: [1, 2, 3], concurrency: 1}", FAST)
    world.finish(("a", "failed", BOOM))
    world.finish((("f", 0), 1))
    assert ("f", 1) not in world.started
    assert world.statuses["f"] == "cancelled"
    assert ended(world) == "failed"


def test_idle_fan_out_of_a_paused_run_ends() -> None:
    world = run("a: {action: t.a}\nf: {action: t.f, with_items: [1, 2, 3], concurrency: 1}", FAST)
    world.pause()
    world.finish((("f", 0), 1))
    world.finish(("a", "failed", BOOM))
    assert world.statuses["f"] == "cancelled"
    assert ended(world) == "failed"


def test_task_that_is_due_does_not_start() -> None:
    world = run(BRANCHES, FAST)
    world.pause()
    world.finish(("b", 1)).finish(("a", "failed", BOOM))
    assert ended(world) == "failed"
    assert ("c", None) not in world.started


def test_exit_task_runs_after_the_failure() -> None:
    world = run(BRANCHES, FAST + "\non_exit: {action: t.bye, input: {how: '{{ system.status }}'}}")
    world.finish(("a", "failed", BOOM)).finish(("b", 1))
    assert world.input("on_exit") == {"how": "failed"}
    world.finish(("on_exit", 1))
    assert ended(world) == "failed"


def test_cancelling_after_the_failure_ends_open_tasks() -> None:
    world = run(BRANCHES, FAST)
    world.finish(("a", "failed", BOOM))
    world.stop("cancelled", {"type": "Cancelled"})
    assert world.decision.cancel_all
    world.finish(("b", "cancelled", None))
    assert ended(world) == "failed"


def test_cancelling_ends_the_pause_after_the_failure() -> None:
    world = run(BRANCHES, FAST + "\non_exit: {action: t.bye, input: {how: '{{ system.status }}'}}")
    world.finish(("a", "failed", BOOM)).pause()
    world.stop("cancelled", {"type": "Cancelled"})
    world.finish(("b", "cancelled", None))
    assert world.input("on_exit") == {"how": "failed"}
    world.finish(("on_exit", 1))
    assert ended(world) == "failed"


def test_task_is_not_ended_by_hand_after_the_failure() -> None:
    world = run(BRANCHES, FAST)
    world.finish(("a", "failed", BOOM))
    with pytest.raises(Conflict, match="has ended or is ending"):
        world.skip("c")


def test_rerun_from_failed_runs_unstarted_tasks() -> None:
    first = run(BRANCHES, FAST)
    first.finish(("a", "failed", BOOM)).finish(("b", 1))
    plan: Plan = first.plan
    kept_tasks = rerun.from_failed(plan, first.tasks, {})
    assert [plan.graph[task].name for task in kept_tasks] == ["b"]
    again = World(plan.workflow, kept_tasks=kept_tasks, previous_run=first).begin()
    assert set(again.started) == {("a", None), ("c", None)}
    again.finish(("a", 1), ("c", 1))
    assert ended(again) == "completed"
