"""The error of a workflow names what failed first, and not what only follows from it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.serialization import dump_task_state, dump_workflow_state
from penstock.engine.state import FanOut, TaskState, WorkflowState
from penstock.language.workflows.model import Workflow
from penstock.run.root_cause import headline
from penstock.testing.memory_workflow import MemoryWorkflow as World
from tests.penstock.engine.graphs import ENDS, VALUES, sound, workflows
from tests.penstock.engine.test_against_reference import RANDOM
from tests.penstock.engine.written import run

BAD = {"failed", "timeout", "cancelled", "abandoned"}
ERROR = {"type": "ValueError", "message": "no"}
FAN = "f: {action: t.f, with_items: [1, 2, 3, 4]"


def error_of(world: World) -> dict[str, Any]:
    assert world.final is not None
    assert world.final.error is not None
    return dict(world.final.error)


@RANDOM
@given(workflows().filter(sound), st.data())
def test_cause_is_an_unhandled_failure_that_came_first(workflow: Workflow, data: st.DataObject) -> None:
    """The test watches from outside in which order tasks are seen to have failed, one end at a time."""
    world = World(workflow, {"p": 2}).begin()
    seen: list[set[str]] = []

    def watch() -> None:
        bad = {name for name, status in world.statuses.items() if status in BAD}
        seen.append(bad - set().union(*seen))

    watch()
    while world.open:
        key = data.draw(st.sampled_from(world.open))
        status = data.draw(ENDS)
        value = {"code": data.draw(VALUES)} if status != "completed" else data.draw(VALUES)
        world.finish((key, status, value if status in ("completed", "failed") else None))
        watch()
    assert world.final is not None
    if world.final.status != "failed" or "tasks" not in (world.final.error or {}):
        return
    allowed = {task.name for task in workflow.tasks if task.allow_failure}
    unhandled = {
        world.plan.graph[task].name for task, state in world.tasks.items() if not state.handled
    } - allowed
    first = next(group & unhandled for group in seen if group & unhandled)
    error = error_of(world)
    assert error["cause"]["path"].partition("[")[0] in first
    assert next(iter(error["tasks"])) in first
    assert headline(error)


@pytest.mark.parametrize("first", ["a", "b"])
def test_task_that_failed_first_is_named_first(first: str) -> None:
    world = run("a: {action: t.a}\nb: {action: t.b}")
    second = "b" if first == "a" else "a"
    world.finish((first, "failed", ERROR)).finish((second, "failed", {"type": "Late"}))
    error = error_of(world)
    assert list(error["tasks"]) == [first, second]
    assert headline(error) == f"{first}: ValueError: no"
    assert error["message"].startswith(f"{first}: ValueError: no; {second}: Late")


def test_handled_failure_is_no_cause() -> None:
    world = run("a: {action: t.a}\nh: {action: t.h, needs: a, when: one_failed}\nb: {action: t.b}")
    world.finish(("a", "failed", ERROR)).finish(("h", 1)).finish(("b", "failed", {"type": "Late"}))
    assert headline(error_of(world)) == "b: Late"


def test_more_failures_than_are_remembered_name_the_first() -> None:
    world = run("\n".join(f"t{n}: {{action: t.t}}" for n in range(30)))
    for n in reversed(range(30)):
        world.finish((f"t{n}", "failed", ERROR))
    error = error_of(world)
    assert list(error["tasks"]) == [f"t{n}" for n in range(29, 19, -1)]
    assert headline(error) == "t29: ValueError: no"
    assert error["message"].endswith("and 20 more")


def test_items_are_named_in_the_order_in_which_they_failed() -> None:
    world = run(FAN + "}")
    for item in (2, 0, 3, 1):
        world.finish((("f", item), "failed", {"type": "E", "message": str(item)}))
    error = error_of(world)
    assert headline(error) == "f[2]: E: 2"
    assert "4 of 4 items failed: item 2: E: 2; item 0: E: 0; item 3: E: 3; and 1 more" in error["message"]


def test_item_cancelled_for_another_is_counted_and_not_named() -> None:
    world = run(FAN + ", item_failures: {then: cancel}}")
    world.finish((("f", 1), "failed", ERROR))
    world.finish(*((("f", n), "cancelled", {"type": "cancelled", "message": "others"}) for n in (0, 2, 3)))
    error = error_of(world)
    assert "1 of 4 items failed, 3 were cancelled: item 1: ValueError: no" in error["message"]
    assert "others" not in error["message"]
    assert headline(error) == "f[1]: ValueError: no"


def test_item_cancelled_by_hand_is_the_cause() -> None:
    world = run(FAN + "}")
    world.finish((("f", 1), "cancelled", {"type": "cancelled", "message": "asked (ada)"}))
    world.finish(*((("f", n), 1) for n in (0, 2, 3)))
    assert headline(error_of(world)) == "f[1]: asked (ada)"


def test_item_whose_input_is_in_error_is_named() -> None:
    world = run("f: {action: t.f, with_items: [1, 0], input: {n: '{{ 4 // item }}'}}").finish((("f", 0), 1))
    assert (headline(error_of(world)) or "").startswith("f[1]: ExpressionError: task `f`, input")


def test_transition_in_error_is_the_cause_without_a_failed_task() -> None:
    world = run("a: {action: t.a, next: [{when: '1 // 0 == 1', publish: {x: 1}}]}").finish(("a", 1))
    assert error_of(world)["type"] == "TransitionFailed"
    assert (headline(error_of(world)) or "").startswith("ExpressionError: task `a`, next.0.when")


def test_exit_task_is_the_cause_if_it_alone_failed() -> None:
    world = (
        run("a: {action: t.a}", "on_exit: {action: t.bye}")
        .finish(("a", 1))
        .finish(("on_exit", "failed", ERROR))
    )
    assert headline(error_of(world)) == "on_exit: ValueError: no"


def test_state_without_failures_is_stored_as_before() -> None:
    """A run that does not fail costs no byte more."""
    assert "failures" not in dump_workflow_state(WorkflowState(3))
    assert "cancelled" not in dump_task_state(TaskState(fan=FanOut(3)))
