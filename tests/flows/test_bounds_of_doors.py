"""The doors of the table of bounds that need a database: a value of just the bound gets in, and one of a byte more does not.

PENSTOCK_PAYLOAD_CAP is small here, so that a door is found which does not ask for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock import DurableContext, Rule, Schedule, Trigger, action
from penstock.bounds import DEPTH_CAP
from penstock.errors import ExecutionFailed, InvalidInput
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation

pytestmark = pytest.mark.parametrize("transport", ["postgres"], indirect=True)
CAP = 4_096
"""Bytes that PENSTOCK_PAYLOAD_CAP allows in these tests."""
AROUND = len('{"value":""}')
Push = Callable[[Installation, Any], Awaitable[object]]
"""Push a value through a door. It raises InvalidInput or ExecutionFailed where the value is not taken."""


@action(pack="door")
async def take(value: Any = None) -> int:
    return len(value)


@action(pack="door", route="nobody")
async def late() -> None: ...


@action(pack="door")
async def child(ctx: DurableContext, value: Any) -> Any:
    """Run `take` with a value that is one letter longer, or one level deeper."""
    return await ctx.run(take, {"value": f"{value}x" if isinstance(value, str) else [value]})


@action(pack="door")
async def listen(ctx: DurableContext) -> int:
    return len(await ctx.signal("value"))


asking = from_yaml("workflow: door.asking\ntasks: {ask: {inquiry: {prompt: 'Which?'}}}")
waiting = from_yaml("workflow: door.waiting\ntasks: {late: {action: door.late}}")
longer = from_yaml("""
workflow: door.longer
parameters: {value: string}
tasks: {take: {action: door.take, input: {value: "{{ parameters.value ~ 'x' }}"}}}
""")
deeper = from_yaml("""
workflow: door.deeper
parameters: {value: array}
tasks: {take: {action: door.take, input: {value: "{{ [parameters.value] }}"}}}
""")


_KIND: dict[type, str] = {str: "longer_event", list: "deeper_event"}
_RULES = [
    Rule(
        "door.longer_rule",
        trigger="door.longer_event",
        action="door.take",
        params={"value": "{{ payload.value ~ 'x' }}"},
    ),
    Rule(
        "door.deeper_rule",
        trigger="door.deeper_event",
        action="door.take",
        params={"value": "{{ [payload.value] }}"},
    ),
]
DEFINITIONS = (
    take, late, listen, child, asking, waiting, longer, deeper, *_RULES,
    *(Trigger(f"door.{name}") for name in ("opened", *_KIND.values())),
)  # fmt: skip


async def _publish(house: Installation, value: Any) -> object:
    return await house.client.publish("door.opened", {"value": value})


async def _start(house: Installation, value: Any) -> object:
    return await house.client.start("door.take", {"value": value})


async def _answer(house: Installation, value: Any) -> None:
    id = await house.client.start("door.asking")
    [row] = await house.until(
        "select e.id from execution e join inquiry i on i.execution_id = e.id where e.parent = $1", id
    )
    await house.client.answer(row["id"], {"value": value}, by="ada")


async def _signal(house: Installation, value: Any) -> None:
    id = await house.client.start("door.listen")
    await house.client.signal(id, "value", {"value": value})


async def _set_result(house: Installation, value: Any) -> None:
    id = await house.client.start("door.waiting")
    await house.client.command(id, "set_result", task="late", value={"value": value}, by="ada")


async def _rule(house: Installation, value: Any) -> None:
    """Publish an event whose rule adds one letter, or one level, to its value."""
    event = await house.client.publish(f"door.{_KIND[type(value)]}", {"value": _shorter(value)})
    [row] = await house.until("select status, error from enforcement where event_id = $1", event)
    _raise(row["error"])


async def _schedule(house: Installation, value: Any) -> None:
    schedule = Schedule("door.daily", action="door.take", params={"value": value}, every="1d")
    await house.client.schedules.put(schedule)
    _raise((await house.client.schedules.run("door.daily")).error)


def _raise(error: str | None) -> None:
    if error is not None:
        raise InvalidInput(error)


def _shorter(value: Any) -> Any:
    return value[:-1] if isinstance(value, str) else value[0]


async def _child(house: Installation, value: Any) -> object:
    return await house.client.run("door.child", {"value": _shorter(value)}, timeout=60)


async def _task(house: Installation, value: Any) -> object:
    """Start a workflow with a value that is smaller by what its task adds: one letter, or one level."""
    flow = "door.longer" if isinstance(value, str) else "door.deeper"
    return await house.client.run(flow, {"value": _shorter(value)}, timeout=60)


PUSH: dict[str, Push] = {
    "event by client, API, CLI, webhook, poll: its payload": _publish,
    "start by client, API, CLI: its parameters": _start,
    "answer to an inquiry": _answer,
    "signal: its value": _signal,
    "set-result: the result": _set_result,
    "rule: the parameters that it makes": _rule,
    "schedule: its parameters": _schedule,
    "task: the parameters that it makes": _task,
    "child of a durable function: its parameters": _child,
}
"""The doors by their names. `tests/penstock/test_bounds.py` has the others, and knows that each is in one of the two."""


SHALLOW = {"schedule: its parameters"}
"""Doors whose values stand within a definition, which is refused first where it nests too deep."""


@pytest.mark.parametrize("name", PUSH)
async def test_door_takes_its_bounds_and_not_one_more(
    make_house: Callable[..., Installation], name: str
) -> None:
    async with make_house(payload_cap=CAP) as house:
        await house.start(*DEFINITIONS)
        text = "x" * (CAP - AROUND)
        await PUSH[name](house, text)
        with pytest.raises((InvalidInput, ExecutionFailed), match="bytes"):
            await PUSH[name](house, text + "x")
        if name in SHALLOW:
            return
        await PUSH[name](house, nested(DEPTH_CAP - 1))
        with pytest.raises((InvalidInput, ExecutionFailed), match="deeper"):
            await PUSH[name](house, nested(DEPTH_CAP))


def nested(depth: int) -> Any:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value
