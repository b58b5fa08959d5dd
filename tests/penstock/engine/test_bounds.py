"""The bound of a payload on the values that a workflow stores: a larger one fails the task or the workflow, once."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from penstock.bounds import ITEMS_CAPS, RESULTS_CAPS
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


OVERSIZED = "have 16,777,217 bytes of JSON together; at most 16,777,216 are read"
ITEMS = 65
ITEM_BYTES = RESULTS_CAPS * PAYLOAD_CAP // ITEMS
REST = RESULTS_CAPS * PAYLOAD_CAP - ITEMS * ITEM_BYTES
FAN_OUT = "f: {action: t.f, with_items: '{{ range(65) }}'"


def _fan_out(written: str, over: int = 1, more: str = "") -> World:
    """Return the run of a workflow after its fan-out `f`, whose results have `over` bytes more than are read."""
    around = len('["",') - 1  # of each item, and one bracket more
    texts = ["x" * (ITEM_BYTES - around) for _ in range(ITEMS)]
    texts[0] += "x" * (REST + over - 1)
    return run(written, more).finish(*((("f", item), text) for item, text in enumerate(texts)))


@pytest.mark.parametrize("used", [
    "{{ tasks.f.result }}",
    "{{ tasks.f.result | length }}",
    "{{ tasks.f.result[0] }}",
    "{{ tasks.f.result | default([]) }}",
    "{{ tasks.f.result is defined }}",
    "{{ tasks.f }}",
    "{{ tasks.f.get('result', 1) }}",
    "{{ tasks.f.values() | list }}",
    "{{ [tasks.f] | map(attribute='result', default=1) | list }}",
    "of {{ tasks.f.result }}",
])  # fmt: skip
def test_task_that_reads_oversized_results_fails(used: str) -> None:
    tasks = f"{{{FAN_OUT}}}, r: {{action: t.r, needs: f, input: {{x: {used!r}}}}}}}".replace("\\'", "''")
    world = _fan_out(tasks)
    assert world.statuses == {"f": "completed", "r": "failed"}
    assert world.final is not None
    assert world.final.error is not None
    error = world.final.error["tasks"]["r"]
    assert "task `f`" in error["message"]
    assert OVERSIZED in error["message"]
    assert "link" in error["hint"]


def test_task_that_reads_results_at_their_bound_starts() -> None:
    world = _fan_out(
        f"{{{FAN_OUT}}}, r: {{action: t.r, needs: f, input: {{x: '{{{{ tasks.f.result | length }}}}'}}}}}}", 0
    )
    assert world.input("r") == {"x": ITEMS}


def test_task_beside_oversized_results_starts() -> None:
    world = _fan_out(
        f"{{{FAN_OUT}}}, r: {{action: t.r, needs: f, input: {{x: '{{{{ tasks.f.status }}}}'}}}}}}"
    )
    assert world.input("r") == {"x": "completed"}


def test_fan_out_that_publishes_oversized_results_fails() -> None:
    world = _fan_out(f"{{{FAN_OUT}, publish: {{x: '{{{{ result | length }}}}'}}}}}}")
    assert world.statuses == {"f": "failed"}
    assert world.final is not None
    assert world.final.error is not None
    assert OVERSIZED in world.final.error["tasks"]["f"]["message"]


@pytest.mark.parametrize("way", ["when: '{{ result | length > 1 }}'", "publish: {x: '{{ result }}'}"])
def test_transition_on_oversized_results_fails_the_workflow(way: str) -> None:
    world = _fan_out(f"{{{FAN_OUT}, next: [{{{way}, do: b}}]}}, b: {{action: t.b}}}}")
    assert world.statuses["f"] == "completed"
    assert world.final is not None
    assert world.final.error is not None
    assert OVERSIZED in world.final.error["transitions"][0]["message"]


@pytest.mark.parametrize("field", ["when", "with_items", "concurrency"])
def test_rule_or_item_of_oversized_results_fails_its_task(field: str) -> None:
    fields = {"with_items": "{{ range(1) }}", field: "{{ tasks.f.result | length }}"}
    if field == "when":
        fields = {"when": "{{ tasks.f.result | length > 1 }}"}
    written = ", ".join(f'{name}: "{value}"' for name, value in fields.items())
    world = _fan_out(f"{{{FAN_OUT}}}, r: {{action: t.r, needs: f, {written}}}}}")
    assert world.statuses["r"] == "failed"
    assert world.final is not None
    assert world.final.error is not None
    assert OVERSIZED in world.final.error["tasks"]["r"]["message"]


def test_output_of_oversized_results_fails_the_workflow() -> None:
    world = _fan_out(f"{{{FAN_OUT}}}}}", more="output: '{{ tasks.f.result | length }}'")
    assert world.final is not None
    assert world.final.status == "failed"
    assert OVERSIZED in str(world.final.error)


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
