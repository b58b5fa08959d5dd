"""Stopping and ending by hand, whatever waits, is due or is over."""

from __future__ import annotations

import pytest

from penstock.engine import Inbox
from penstock.errors import Conflict
from penstock.language.workflows.serialization import from_yaml
from penstock.testing.memory_workflow import MemoryWorkflow as World
from tests.penstock.engine.written import names, run

CHAIN = "a: {action: t.a}\nb: {action: t.b, needs: a, input: {run: '{{ system.id }}'}}\nc: {action: t.c, needs: b}"
FAN = "f: {action: t.f, with_items: [1, 2, 3, 4], concurrency: 2}"
EXIT = "on_exit: {action: t.bye, input: {run: '{{ system.id }}', how: '{{ system.status }}'}}"
WHY = {"type": "Cancelled"}


def test_stopping_an_ended_run_cancels_nothing() -> None:
    world = run(CHAIN)
    world.stop("cancelled", WHY).finish(("a", "cancelled", None))
    assert world.final is not None
    world.stop("cancelled", WHY)
    assert not world.decision.cancel_all


def test_stopping_a_paused_run_with_nothing_open_ends_it_at_once() -> None:
    world = run(CHAIN)
    world.pause()
    world.finish(("a", 1))
    world.stop("cancelled", WHY)
    assert world.final is not None
    assert world.final.status == "cancelled"


def test_a_fan_out_that_a_stop_finds_idle_says_how_far_it_came() -> None:
    world = run(FAN + "\nz: {action: t.z}")
    world.pause()
    world.finish((("f", 0), 1), (("f", 1), 1))
    world.stop("cancelled", WHY)
    assert world.tasks[0].status == "cancelled"
    message = "0 of 4 items failed, 2 were not started"
    assert world.tasks[0].error == {"type": "ItemsFailed", "message": message}


def test_a_fan_out_that_was_stopped_keeps_the_first_error_that_the_engine_found() -> None:
    text = "f: {action: t.f, with_items: [1, 0, 2, 3], concurrency: 1, input: {n: '{{ 4 // item }}'}"
    world = run(text + ", item_failures: {tolerate: 2}}\nz: {action: t.z}")
    world.pause()
    world.finish((("f", 0), 1))
    world.resume().pause()
    world.finish((("f", 2), 1))
    world.stop("cancelled", WHY)
    assert world.tasks[0].error["message"] == "1 of 4 items failed, 1 were not started"
    assert "4 // item" in str(world.tasks[0].error["first"])


def test_an_ended_or_stopping_run_takes_no_decision_by_hand() -> None:
    world = run(CHAIN, EXIT)
    world.stop("cancelled", WHY)
    with pytest.raises(Conflict, match="has ended or is ending"):
        world.skip("a")
    world.finish(("a", "cancelled", None))
    with pytest.raises(Conflict, match="has ended or is ending"):
        world.skip("a")
    world.skip("on_exit")
    assert world.final is not None
    with pytest.raises(Conflict, match="has ended or is ending"):
        world.skip("on_exit")


def test_a_due_task_that_is_ended_by_hand_is_no_longer_due() -> None:
    world = run(CHAIN)
    world.pause()
    world.finish(("a", 1))
    assert list(world.state.due) == [1]
    world.skip("b")
    assert list(world.state.due) == []


def test_of_a_fan_out_that_was_ended_by_hand_no_more_items_start() -> None:
    world = run(FAN + "\ng: {action: t.g, needs: f, input: {all: '{{ tasks.f.result }}'}}")
    world.pause()
    world.finish((("f", 0), 1))
    world.set_result("f", [9])
    assert names(world.resume()) == ["g"]
    assert world.input("g") == {"all": [9]}


def test_a_fan_out_waits_once_however_many_of_its_items_end_while_it_is_paused() -> None:
    world = run(FAN)
    world.pause()
    world.finish((("f", 0), 1)).finish((("f", 1), 1))
    assert list(world.state.due) == [0]


def test_a_resumed_run_gives_its_id_and_is_no_longer_paused() -> None:
    world = run(CHAIN)
    world.pause()
    world.finish(("a", 1))
    world.command("resume")
    assert world.state.paused is False
    assert world.input("b") == {"run": "run-1"}


def test_a_resumption_starts_no_more_than_its_budget() -> None:
    tasks = "\n".join(f"  {name}: {{action: t.x, needs: a}}" for name in "bcdef")
    world = World(from_yaml(f"workflow: t.w\ntasks:\n  a: {{action: t.a}}\n{tasks}"), budget=2).begin()
    world.pause()
    world.finish(("a", 1))
    decisions = world.decisions
    assert names(world.resume()) == ["b", "c", "d", "e", "f"]
    assert world.decisions == decisions + 3


def test_a_task_after_a_set_result_sees_the_run() -> None:
    world = run(CHAIN)
    world.command("set_result", "a", 1)
    assert world.input("b") == {"run": "run-1"}


def test_a_turn_stops_as_often_as_it_was_asked_to() -> None:
    world = run("a: {action: t.a}\nb: {action: t.b, needs: a}", EXIT)
    world.pause()
    world.finish(("a", 1))
    turn = world.take_turn(Inbox(stops=2, stop_status="cancelled", stop_reason="enough"))
    assert turn.cancels == [(None, False), (None, True)]
    assert turn.state.stops == 2
    assert world.input("on_exit") == {"run": "run-1", "how": "cancelled"}
