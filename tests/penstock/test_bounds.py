"""The table of doors against the doors: a value of just the bound gets in, and one of a byte or a level more does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from penstock.bounds import DEPTH_CAP, DOORS, SCHEMA_PARTS_CAP, Door
from penstock.engine.plan import Plan
from penstock.errors import PenstockError
from penstock.language.schemas import Schema, check_schema
from penstock.language.terms.options import Wrong
from penstock.messaging.transports import Delivery
from penstock.run.outcomes import Outcome, TaskError
from penstock.testing.memory_workflow import MemoryWorkflow
from penstock_executor.handlers import event_received
from tests.flows.test_bounds_of_doors import PUSH as ON_SERVERS
from tests.penstock.engine.written import run

Push = Callable[[Any], Any]
"""Push a value through a door. It raises PenstockError or Wrong where it is not taken as it is."""


def _event(value: Any) -> None:
    triggers = {"shop.x": Schema({})}
    delivery = Delivery("event.received", orjson.dumps(value), None, routing_key="shop.x")
    event_received._payload(delivery, triggers, _CAPS["event on the exchange: its body"])


def _result(value: Any) -> None:
    outcome = Outcome.returned(value, _CAPS["result of an action, without a result store"])
    if outcome.error is not None:
        raise PenstockError(outcome.error.type)


def _workflow(tasks: str, more: str = "") -> Push:
    def push(value: Any) -> None:
        workflow = run(tasks, more).plan.workflow
        world = MemoryWorkflow(workflow, {"value": value}, plan=Plan(workflow)).begin()
        if world.final is None:
            world.finish(("a", value))
        if world.final is not None and world.final.status != "completed":
            raise PenstockError(str(world.final.error))

    return push


def _fan_out_results(value: Any) -> None:
    world = run("{f: {action: t.f, with_items: '{{ range(1) }}'}}", "output: '{{ tasks.f.result | length }}'")
    world.finish((("f", 0), value[0]))
    if world.final is None or world.final.status != "completed":
        raise PenstockError(str(world.final))


def _uncut(part: str) -> Push:
    def push(value: str) -> None:
        fields: dict[str, Any] = {"message": "", part: value}
        if getattr(TaskError("E", **fields), part) != value:
            raise PenstockError("it was cut")

    return push


_CAPS = {door.name: door.bytes for door in DOORS}
_PUBLISHES = "{a: {action: t.a, publish: '{{ {\"x\": result} }}'}}"
_ITEMS = "{a: {action: t.a}, f: {action: t.f, needs: a, with_items: '{{ tasks.a.result }}'}}"
PUSH: dict[str, Push] = {
    "event on the exchange: its body": _event,
    "result of an action, without a result store": _result,
    "output of a workflow": _workflow("{a: {action: t.a}}", "output: '{{ tasks.a.result }}'"),
    "vars of a workflow": _workflow(
        "{a: {action: t.a}}", "vars: {x: '{{ parameters.value }}'}\nparameters: {value: {}}"
    ),
    "publish of a task": _workflow(_PUBLISHES),
    "publish of a transition": _workflow(
        "{a: {action: t.a, next: [{publish: {x: '{{ result }}'}, do: []}]}}"
    ),
    "with_items of a task": _workflow(_ITEMS),
    "results of a fan-out, where an expression reads them": _fan_out_results,
    "error of an attempt: its message": _uncut("message"),
    "error of an attempt: its traceback": _uncut("traceback"),
    "schema of a trigger, action or inquiry": check_schema,
}


_AROUND = {"vars of a workflow", "publish of a task", "publish of a transition"}
"""Doors that put `{"x":}` around the value."""


def _value_of(door: Door, size: int) -> Any:
    """A value of this size as the door counts it."""
    if door.consequence == "cut":
        return "x" * size
    if "schema" in door.name:
        return {"title": "x" * (size - len('{"title":""}'))}
    if "with_items" in door.name or "fan-out" in door.name:
        return ["x" * (size - len('[""]'))]
    around = len('{"x":}') if door.name in _AROUND else 0
    return "x" * (size - 2 - around)


def test_each_door_is_tried() -> None:
    assert PUSH.keys() | ON_SERVERS.keys() == {door.name for door in DOORS}
    assert not PUSH.keys() & ON_SERVERS.keys()


@pytest.mark.parametrize("door", [door for door in DOORS if door.name in PUSH], ids=lambda door: door.name)
def test_door_takes_its_bound_of_bytes_and_not_one_more(door: Door) -> None:
    PUSH[door.name](_value_of(door, door.bytes))
    with pytest.raises((PenstockError, Wrong)):
        PUSH[door.name](_value_of(door, door.bytes + 1))


DEEP = [door for door in DOORS if door.name in PUSH and door.depth is not None and "schema" not in door.name]


@pytest.mark.parametrize("door", DEEP, ids=lambda door: door.name)
def test_door_takes_its_bound_of_depth_and_not_one_more(door: Door) -> None:
    around = 1 if door.name in _AROUND else 0
    PUSH[door.name](_nested(DEPTH_CAP - around))
    with pytest.raises(PenstockError):
        PUSH[door.name](_nested(DEPTH_CAP - around + 1))


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_schema_takes_its_bound_of_parts_and_not_one_more() -> None:
    check_schema({"anyOf": [{}] * (SCHEMA_PARTS_CAP - 1)})
    with pytest.raises(Wrong, match="schemas inside"):
        check_schema({"anyOf": [{}] * SCHEMA_PARTS_CAP})
