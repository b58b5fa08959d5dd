"""The results that a re-run keeps of the run before, task by task and item by item, and a kept task in it."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.engine.rerun import from_failed, from_task
from penstock.engine.state import KeptTask
from penstock.testing.memory_workflow import MemoryWorkflow as World
from tests.penstock.engine.written import names, run

FAN = """
    f: {action: t.f, with_items: "{{ parameters.items }}"}
    g: {action: t.g, needs: f}
"""


def again(world: World, kept: Mapping[int, KeptTask]) -> World:
    return World(world.plan.workflow, world.parameters, kept_tasks=kept, previous_run=world).begin()


def by_name(world: World, kept: Mapping[int, KeptTask]) -> dict[str, KeptTask]:
    return {world.plan.graph[task].name: one for task, one in kept.items()}


def test_from_a_fan_out_nothing_of_it_is_kept() -> None:
    world = run(FAN, items=[1, 2]).finish((("f", 0), 1), (("f", 1), 2)).finish(("g", 3))
    kept = from_task(world.plan, world.tasks, world.plan.index("f"))
    assert kept == {}
    assert names(again(world, kept)) == ["f0", "f1"]


def test_of_a_failed_fan_out_of_which_no_item_is_known_nothing_is_kept() -> None:
    world = run(FAN, items=[1]).finish((("f", 0), "failed", None))
    assert from_failed(world.plan, world.tasks, {}) == {}


def test_items_are_kept_one_by_one_wherever_they_stand_in_the_list() -> None:
    world = run(FAN, items=list(range(20)))
    completed = [1, 8, 9, 17]
    world.finish(*((("f", n), "completed" if n in completed else "failed", n) for n in range(20)))
    bits = sum(1 << n for n in completed).to_bytes(3, "little")
    rerun = again(world, from_failed(world.plan, world.tasks, {0: bits}))
    assert names(rerun) == [f"f{n}" for n in range(20) if n not in completed]
    rerun.finish(*((("f", n), n) for n in range(20) if n not in completed))
    assert rerun.statuses["f"] == "completed"
    assert rerun.tasks[0].kept is None


def test_items_of_another_list_are_forgotten() -> None:
    world = run(FAN, items=[1, 2]).finish((("f", 0), 1), (("f", 1), "failed", None))
    kept = from_failed(world.plan, world.tasks, {0: bytes([1])})
    same = again(world, kept)
    assert (same.decision.forget_kept, names(same)) == (set(), ["f1"])
    world.parameters = {"items": [3, 4]}
    other = again(world, kept)
    assert (other.decision.forget_kept, names(other)) == ({0}, ["f0", "f1"])


def test_an_open_task_and_its_successors_are_not_kept() -> None:
    world = run("a: {action: t.a}\nb: {action: t.b}\nc: {action: t.c, needs: b}").finish(("a", 1))
    assert set(by_name(world, from_failed(world.plan, world.tasks, {}))) == {"a"}
    assert set(by_name(world, from_task(world.plan, world.tasks, world.plan.index("c")))) == {"a"}


def test_a_task_skipped_by_its_rule_is_decided_again() -> None:
    text = """
    a: {action: t.a}
    b: {action: t.b, needs: a, when: one_failed}
    c: {action: t.c, needs: b, when: all_done}
    d: {action: t.d, needs: c}
    """
    world = run(text).finish(("a", 1)).finish(("c", 2)).finish(("d", "failed", None))
    assert world.statuses["b"] == "skipped"
    kept = from_failed(world.plan, world.tasks, {})
    assert set(by_name(world, kept)) == {"a", "c"}
    rerun = again(world, kept)
    assert (names(rerun), rerun.statuses["b"], rerun.statuses["c"]) == (["d"], "skipped", "completed")


def test_a_result_that_was_given_is_kept_with_the_task() -> None:
    world = run(
        "a: {action: noop, input: {n: 7}}\nb: {action: t.b, needs: a, input: {n: '{{ tasks.a.result.n }}'}}"
    )
    world.finish(("b", "failed", None))
    kept = from_failed(world.plan, world.tasks, {})
    assert kept[0].given
    rerun = again(world, kept)
    assert rerun.input("b") == {"n": 7}
    assert rerun.tasks[0].kept is None


def test_an_error_that_the_engine_found_is_kept_with_the_task() -> None:
    world = run(
        """
        a: {action: fail, input: {message: no stock}, allow_failure: true}
        b: {action: t.b, needs: a, when: all_done, input: {why: "{{ tasks.a.error.message }}"}}
        """
    ).finish(("b", "failed", None))
    rerun = again(world, from_failed(world.plan, world.tasks, {}))
    assert rerun.input("b") == {"why": "no stock"}
    assert rerun.tasks[0].error == world.tasks[0].error


def test_a_given_task_that_ended_itself_is_not_kept_as_by_hand() -> None:
    world = run("a: {action: t.a}\nb: {action: t.b, needs: a}")
    world.set_result("a", 1).finish(("b", "failed", None))
    kept = from_failed(world.plan, world.tasks, {})
    assert [(one.given, one.by_hand, one.result) for one in kept.values()] == [(True, False, 1)]
