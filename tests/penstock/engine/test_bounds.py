"""The bound of a payload on the values that a workflow stores: a larger one fails the task or the workflow, once."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from penstock.bounds import ITEMS_CAPS
from penstock.engine.facts import TaskResult
from penstock.engine.plan import Plan
from penstock.engine.task_errors import describe_failed_tasks
from penstock.language.schemas import PAYLOAD_CAP
from penstock.testing.memory_workflow import MemoryWorkflow as World
from tests.penstock.engine.written import run

QUOTES = 2
OVER = "x" * (PAYLOAD_CAP - QUOTES + 1)
BOUND = OVER[:-1]
"""A text whose JSON has just as many bytes as are taken."""
ONE_TASK = "{a: {action: t.a}}"


def _around(text: str, wrapped: dict[str, Any]) -> str:
    """The text, shorter by what the JSON around it takes."""
    return text[: len(text) - (len(orjson.dumps(wrapped)) - QUOTES)]


@pytest.mark.parametrize(("value", "status"), [(BOUND, "completed"), (OVER, "failed")])
def test_output_over_the_cap_fails_the_workflow(value: str, status: str) -> None:
    world = run(ONE_TASK, "output: '{{ tasks.a.result }}'").finish(("a", value))
    assert world.final is not None
    assert world.final.status == status
    if status == "failed":
        assert world.final.output is None
        assert world.final.error is not None
        assert world.final.error["type"] == "ResultNotStorable"
        assert "output has 262,145 bytes" in world.final.error["message"]


@pytest.mark.parametrize(("value", "status"), [(BOUND, "completed"), (OVER, "failed")])
def test_published_values_over_the_cap_fail_their_task(value: str, status: str) -> None:
    value = _around(value, {"x": ""})
    world = run("{a: {action: t.a, publish: {x: '{{ result }}'}}, b: {action: t.b, needs: a}}")
    world.finish(("a", value))
    assert world.statuses["a"] == status
    assert (world.variables != []) == (status == "completed")
    if status == "failed":
        assert world.final is not None
        assert world.final.error is not None
        assert world.final.error["tasks"]["a"]["type"] == "ResultNotStorable"


def test_transition_that_publishes_over_the_cap_fails_the_workflow() -> None:
    world = run("{a: {action: t.a, next: [{publish: {x: '{{ result }}'}, do: b}]}, b: {action: t.b}}")
    world.finish(("a", OVER))
    assert world.final is not None
    assert world.final.error is not None
    assert world.final.error["transitions"][0]["type"] == "ResultNotStorable"


def test_vars_over_the_cap_fail_the_workflow() -> None:
    workflow = run(ONE_TASK, "vars: {x: '{{ parameters.text }}'}\nparameters: {text: {}}").plan.workflow
    world = World(workflow, {"text": OVER}).begin()
    assert world.final is not None
    assert world.final.error is not None
    assert world.final.error["type"] == "ResultNotStorable"


def test_noop_over_the_cap_fails() -> None:
    world = run("{a: {action: t.a}, n: {action: noop, needs: a, input: {x: '{{ tasks.a.result }}'}}}")
    world.finish(("a", OVER))
    assert world.statuses["n"] == "failed"


def test_items_over_their_cap_fail_the_task() -> None:
    text = "{a: {action: t.a}, f: {action: t.f, needs: a, with_items: '{{ tasks.a.result }}'}}"
    item = "x" * (PAYLOAD_CAP - 3)
    world = run(text).finish(("a", [item] * ITEMS_CAPS))
    assert world.statuses["f"] == "failed"
    assert run(text).finish(("a", [item] * (ITEMS_CAPS - 1))).statuses["f"] != "failed"


def test_cap_is_that_of_the_installation() -> None:
    workflow = run(ONE_TASK, "output: '{{ tasks.a.result }}'").plan.workflow
    world = World(workflow, plan=Plan(workflow, 1024)).begin().finish(("a", "x" * 1023))
    assert world.final is not None
    assert world.final.status == "failed"


def test_error_of_nested_workflows_does_not_multiply() -> None:
    error: dict[str, Any] = {"type": "ValueError", "message": "m" * 4_000, "traceback": "t" * 16_000}
    for _ in range(8):
        error = describe_failed_tasks({f"t{n}": TaskResult(None, error) for n in range(10)}, 10, [])
    assert len(orjson.dumps(error)) < PAYLOAD_CAP
    assert error["tasks"]["t0"]["type"] == "TaskFailed"
