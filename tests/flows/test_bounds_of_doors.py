"""The doors of the table of bounds that need a database: a value of just the bound gets in, and one of a byte more does not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock import DurableContext, Trigger, action
from penstock.bounds import DEPTH_CAP, DOORS
from penstock.errors import ExecutionFailed, InvalidInput
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation

pytestmark = pytest.mark.parametrize("transport", ["postgres"], indirect=True)
CAPS = {door.name: door.bytes for door in DOORS}
AROUND = len('{"value":""}')
Push = Callable[[Installation, Any], Awaitable[object]]
"""Push a value through a door. It raises InvalidInput or ExecutionFailed where the value is not taken."""


@action(pack="door")
async def take(value: Any = None) -> int:
    return len(value)


@action(pack="door", route="nobody")
async def late() -> None: ...


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


async def _task(house: Installation, value: Any) -> object:
    """Start a workflow with a value that is smaller by what its task adds: one letter, or one level."""
    shorter = value[:-1] if isinstance(value, str) else value[0]
    flow = "door.longer" if isinstance(value, str) else "door.deeper"
    return await house.client.run(flow, {"value": shorter}, timeout=60)


PUSH: dict[str, Push] = {
    "event by client, API, CLI, webhook, poll: its payload": _publish,
    "start by client, API, CLI: its parameters": _start,
    "answer to an inquiry": _answer,
    "signal: its value": _signal,
    "set-result: the result": _set_result,
    "task: the parameters that it makes": _task,
}
"""The doors by their names. `tests/penstock/test_bounds.py` has the others, and knows that each is in one of the two."""


@pytest.mark.parametrize("name", PUSH)
async def test_door_takes_its_bounds_and_not_one_more(house: Installation, name: str) -> None:
    await house.start(take, late, listen, asking, waiting, longer, deeper, Trigger("door.opened"))
    text = "x" * (CAPS[name] - AROUND)
    await PUSH[name](house, text)
    with pytest.raises((InvalidInput, ExecutionFailed), match="bytes"):
        await PUSH[name](house, text + "x")
    await PUSH[name](house, nested(DEPTH_CAP - 1))
    with pytest.raises((InvalidInput, ExecutionFailed), match="deeper"):
        await PUSH[name](house, nested(DEPTH_CAP))


def nested(depth: int) -> Any:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value
