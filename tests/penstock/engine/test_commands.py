"""Pause, resume, stop, skip, set a result, the exit task, and re-runs."""

from __future__ import annotations

import pytest

from penstock.engine.rerun import from_failed, from_task
from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.testing.memory_workflow import MemoryWorkflow as World
from tests.penstock.engine.written import names, run

CHAIN = """
    a: {action: t.a, publish: {x: "{{ result }}"}}
    b: {action: t.b, needs: a, input: {x: "{{ vars.x }}"}}
    c: {action: t.c, needs: b, input: {b: "{{ tasks.b.result }}"}}
"""
EXIT = "on_exit: {action: t.bye, input: {how: '{{ system.status }}', why: '{{ system.error }}'}}"


def test_while_paused_nothing_starts_and_on_resume_everything_that_became_due_does() -> None:
    world = run(CHAIN)
    assert world.pause()
    world.finish(("a", 1))
    assert (names(world), world.statuses) == ([], {"a": "completed", "b": "due"})
    assert not world.pause()
    assert names(world.resume()) == ["b"]
    assert world.input("b") == {"x": 1}


def test_a_paused_fan_out_goes_on_where_it_was() -> None:
    world = run("f: {action: t.f, with_items: [1, 2, 3, 4], concurrency: 2}")
    world.pause()
    assert names(world.finish((("f", 0), 1))) == ["f1"]
    assert names(world.finish((("f", 1), 1))) == []
    assert names(world.resume()) == ["f2", "f3"]


def test_stop_cancels_open_tasks_starts_none_and_ends_after_them() -> None:
    world = run(CHAIN + "    d: {action: t.d}\n").finish(("a", 1))
    world.stop("cancelled", {"type": "Cancelled"})
    assert world.decision.cancel_all
    assert world.final is None
    assert names(world.finish(("b", 5))) == ["d"]
    world.finish(("d", "cancelled", None))
    assert world.final is not None
    assert (world.final.status, world.final.error) == ("cancelled", {"type": "Cancelled"})
    assert set(world.statuses) == {"a", "b", "d"}
    before = world.decisions
    world.stop("cancelled")
    assert (world.decisions, world.decision.final) == (before + 1, None)


def test_a_workflow_that_is_paused_can_be_stopped() -> None:
    world = run(CHAIN + "    f: {action: t.f, needs: a, with_items: [1, 2], concurrency: 1}\n")
    world.finish(("a", 1))
    world.pause()
    world.finish(("b", 1), (("f", 0), 1))
    assert names(world) == []
    world.stop("timeout", {"type": "Timeout"})
    assert world.final is not None
    assert world.final.status == "timeout"


def test_the_exit_task_runs_after_every_kind_of_end_and_knows_it() -> None:
    world = run("a: {action: t.a}", EXIT).finish(("a", 1))
    assert names(world) == ["on_exit"]
    assert world.input("on_exit") == {"how": "completed", "why": None}
    world.finish(("on_exit", 1))
    assert world.final is not None
    assert world.final.status == "completed"

    world = run("a: {action: t.a}", EXIT).finish(("a", "failed", {"type": "X", "message": "m"}))
    assert world.input("on_exit")["why"]["message"] == "a: X: m"
    world.finish(("on_exit", "failed", None))
    assert world.final is not None
    assert "a: X: m" in str(world.final.error)

    world = run("a: {action: t.a}", EXIT)
    world.stop("cancelled", {"type": "Cancelled"})
    assert names(world) == ["a"]
    world.finish(("a", "cancelled", None))
    assert world.input("on_exit") == {"how": "cancelled", "why": {"type": "Cancelled"}}
    world.finish(("on_exit", 1))
    assert world.final is not None
    assert world.final.status == "cancelled"


def test_a_failing_exit_task_fails_a_workflow_that_had_completed() -> None:
    world = run("a: {action: t.a}", EXIT).finish(("a", 1)).finish(("on_exit", "failed", {"type": "X"}))
    assert world.final is not None
    assert world.final.error is not None
    assert (world.final.status, world.final.error["message"]) == ("failed", "on_exit: X")
    allowed = EXIT.replace("on_exit: {", "on_exit: {allow_failure: true, ")
    world = run("a: {action: t.a}", allowed).finish(("a", 1)).finish(("on_exit", "failed", None))
    assert world.final is not None
    assert world.final.status == "completed"


def test_only_the_second_stop_cancels_the_exit_task_of_a_completed_run() -> None:
    world = run("a: {action: t.a}", EXIT).finish(("a", 1))
    world.stop("cancelled", {"type": "Cancelled"})
    assert not world.decision.cancel_all
    world.stop("cancelled", {"type": "Cancelled"})
    assert world.decision.cancel_all
    world.finish(("on_exit", "cancelled", None))
    assert world.final is not None
    assert world.final.status == "cancelled"


def test_second_stop_ends_tasks_that_clean_up() -> None:
    world = run("a: {action: t.a}", EXIT)
    for by_hand in (False, True, True):
        world.stop("cancelled", {"type": "Cancelled"})
        assert (world.decision.cancel_all, world.decision.by_hand) == (True, by_hand)
    world.finish(("a", "cancelled", None))
    assert (world.decision.cancel_all, world.decision.by_hand) == (False, False)


def test_a_stop_lets_a_paused_run_begin_its_exit_task() -> None:
    world = run("a: {action: t.a}", EXIT)
    world.pause()
    world.finish(("a", 1))
    assert names(world) == []
    world.stop("cancelled")
    assert names(world) == ["on_exit"]
    world.finish(("on_exit", 1))
    assert world.final is not None
    assert world.final.status == "completed"


def test_a_result_set_by_hand_is_as_good_as_one_that_was_worked_out() -> None:
    world = run(CHAIN)
    world.set_result("b", 42)
    assert names(world) == ["a", "c"]
    assert world.input("c") == {"b": 42}
    world.finish(("a", 1), ("c", 1))
    assert ("b", None) not in world.started
    assert world.final is not None
    assert world.final.status == "completed"


def test_a_task_that_runs_and_is_decided_by_hand_is_cancelled_and_its_own_end_comes_too_late() -> None:
    world = run(CHAIN)
    world.set_result("a", 7)
    assert world.decision.cancel == {world.plan.index("a")}
    assert world.input("b") == {"x": 7}
    world.finish(("a", "cancelled", None))
    assert world.statuses["a"] == "completed"
    world.skip("b")
    assert world.statuses == {"a": "completed", "b": "skipped", "c": "skipped"}


def test_an_ended_task_cannot_be_decided_by_hand() -> None:
    world = run(CHAIN, EXIT).finish(("a", 1))
    with pytest.raises(Conflict, match="`a` has ended already, as completed"):
        world.skip("a")
    with pytest.raises(Conflict, match="`on_exit` has not started"):
        world.skip("on_exit")
    world.finish(("b", 1)).finish(("c", 1)).finish(("on_exit", 1))
    with pytest.raises(Conflict, match="has ended or is ending"):
        world.set_result("b", 1)


def again(world: World, kept: dict[int, object]) -> World:
    return World(world.plan.workflow, world.parameters, kept_tasks=kept, previous_run=world).begin()  # type: ignore[arg-type]


def test_a_rerun_from_failed_keeps_succeeded_tasks_and_variables() -> None:
    world = run(CHAIN).finish(("a", 1)).finish(("b", "failed", None))
    assert world.final is not None
    rerun = again(world, from_failed(world.plan, world.tasks, {}))  # type: ignore[arg-type]
    assert names(rerun) == ["b"]
    assert rerun.input("b") == {"x": 1}
    rerun.finish(("b", 2)).finish(("c", 3))
    assert rerun.final is not None
    assert rerun.final.status == "completed"


def test_a_rerun_from_failed_keeps_nothing_that_comes_after_a_failure() -> None:
    world = run(CHAIN + "    d: {action: t.d, needs: b, when: always}\n    e: {action: t.e, needs: a}\n")
    world.finish(("a", 1)).finish(("b", "failed", None), ("e", 1)).finish(("d", 1))
    rerun = again(world, from_failed(world.plan, world.tasks, {}))  # type: ignore[arg-type]
    assert names(rerun) == ["b"]
    assert rerun.statuses["e"] == "completed"
    assert names(rerun.finish(("b", 1))) == ["c", "d"]


def test_a_rerun_from_failed_keeps_failures_that_were_handled() -> None:
    world = run(
        """
        a: {action: t.a, next: [{when: failed(), do: h}]}
        h: {action: t.h}
        b: {action: t.b, needs: h}
        """
    )
    world.finish(("a", "failed", None)).finish(("h", 1)).finish(("b", "failed", None))
    rerun = again(world, from_failed(world.plan, world.tasks, {}))  # type: ignore[arg-type]
    assert names(rerun) == ["b"]
    rerun.finish(("b", 1))
    assert rerun.final is not None
    assert rerun.final.status == "completed"


def test_a_rerun_of_a_fan_out_keeps_the_items_that_completed_if_the_list_is_the_same() -> None:
    tasks = """
        l: {action: t.l}
        f: {action: t.f, needs: l, with_items: "{{ tasks.l.result }}"}
        g: {action: t.g, needs: f, input: {all: "{{ tasks.f.result }}"}}
    """
    world = run(tasks).finish(("l", [1, 2, 3]))
    world.finish((("f", 0), "A"), (("f", 1), "failed", None), (("f", 2), "C"))
    kept = from_failed(world.plan, world.tasks, {1: bytes([0b101])})
    rerun = again(world, kept)  # type: ignore[arg-type]
    assert names(rerun) == ["f1"]
    assert rerun.finish((("f", 1), "B")).input("g") == {"all": ["A", "B", "C"]}

    kept = from_task(world.plan, world.tasks, world.plan.index("l")) | {1: kept[1]}
    rerun = again(world, kept).finish(("l", [1, 2, 4]))  # type: ignore[arg-type]
    assert names(rerun) == ["f0", "f1", "f2"]


def test_a_rerun_from_a_task_decides_that_and_all_after_it_anew() -> None:
    world = run(CHAIN).finish(("a", 1)).finish(("b", 2)).finish(("c", 3))
    assert world.final is not None
    rerun = again(world, from_task(world.plan, world.tasks, world.plan.index("b")))  # type: ignore[arg-type]
    assert names(rerun) == ["b"]


def test_a_decision_by_hand_stays_so_in_a_rerun() -> None:
    tasks = CHAIN + "    z: {action: t.z, needs: a, when: one_failed}\n    y: {action: t.y, needs: z}\n"
    world = run(tasks)
    world.set_result("z", 9)
    world.skip("b")
    world.finish(("a", 1)).finish(("y", "failed", None))
    rerun = again(world, from_failed(world.plan, world.tasks, {}))  # type: ignore[arg-type]
    assert names(rerun) == ["y"]
    assert rerun.statuses["b"] == "skipped"
    rerun.finish(("y", 1))
    assert rerun.final is not None
    assert rerun.final.status == "completed"


def test_commands_come_by_their_names() -> None:
    world = run(CHAIN)
    assert not world.command("pause")
    assert world.state.paused
    world.finish(("a", 1))
    assert names(world) == []
    world.command("resume")
    assert names(world) == ["b"]
    world.command("set_result", "b", {"by": "hand"})
    assert world.input("c") == {"b": {"by": "hand"}}
    world.command("skip", "c")
    assert world.statuses["c"] == "skipped"
    assert world.final is not None
    for kind, task, error in (
        ("skip", "nobody", NotFound),
        ("skip", None, NotFound),
        ("dance", "a", InvalidInput),
    ):
        with pytest.raises(error):
            world.command(kind, task)


def test_an_ended_run_is_not_paused() -> None:
    world = run("a: {action: t.a}").finish(("a", 1))
    assert not world.pause()
    assert not world.state.paused


def test_a_task_that_is_due_and_ended_by_hand_is_not_started_and_the_others_are() -> None:
    world = run("a: {action: t.a}\nb: {action: t.b, needs: a}\nc: {action: t.c, needs: a}")
    world.pause()
    world.finish(("a", 1))
    world.skip("b")
    assert names(world.resume()) == ["c"]


def test_only_the_exit_task_can_be_ended_by_hand_once_the_others_are_stopped() -> None:
    world = run("a: {action: t.a}", EXIT)
    world.stop("cancelled", {"type": "Cancelled"})
    world.finish(("a", "cancelled", None))
    assert names(world) == ["on_exit"]
    with pytest.raises(Conflict):
        world.skip("a")
    world.skip("on_exit")
    assert world.final is not None
    with pytest.raises(Conflict):
        world.skip("on_exit")


def test_a_rerun_has_the_values_of_the_kept_tasks() -> None:
    text = """
    a: {action: t.a, with_items: [1, 2]}
    b: {action: t.b, allow_failure: true}
    c: {action: t.c, needs: [a, b], when: all_done, input: {a: "{{ tasks.a.result }}", b: "{{ tasks.b.error }}"}}
    """
    world = run(text)
    world.finish((("a", 0), 10), (("a", 1), 20), ("b", "failed", {"type": "Declined", "message": "no"}))
    world.finish(("c", "failed", {"type": "E"}))
    kept = from_failed(world.plan, world.tasks, {})
    assert {world.plan.graph[task].name: (one.status, one.total) for task, one in kept.items()} == {
        "a": ("completed", 2),
        "b": ("failed", None),
    }
    again = World(world.plan.workflow, kept_tasks=kept, previous_run=world).begin()
    assert names(again) == ["c"]
    assert again.input("c") == world.input("c")
    fan = again.tasks[world.plan.index("a")].fan
    assert fan is not None
    assert (fan.total, fan.begun, fan.ended) == (2, 2, 2)
    assert from_task(world.plan, world.tasks, world.plan.index("c")) == kept
