"""Questions that no answer could end, and waits that no event could end: each is refused when it is asked."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from penstock import AskInquiry, DurableContext, Trigger, action, ask
from penstock.errors import ExecutionFailed
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

paid = Trigger(
    "waits.paid",
    schema={"type": "object", "properties": {"order": {"type": "integer"}}, "additionalProperties": False},
)
SCHEMAS: dict[str, dict[str, Any]] = {
    "no type": {"type": "nonsense"},
    "no pattern": {"type": "string", "pattern": "("},
    "no properties": {"properties": 3},
    "no target": {"$ref": "#/nope"},
    "no word": {"typ": "integer"},
}
FILTERS = {
    "no name": "event.payload.order == other",
    "no field": "event.order == 3",
    "no property": "event.payload.odrer == 3",
    "no event": "payload.order == 3",
}


@action(pack="waits")
async def asks_in_function(ctx: DurableContext, name: str) -> Any:
    return await ctx.ask("?", schema=SCHEMAS[name])


@action(pack="waits")
async def asks_by_raising(name: str) -> None:
    raise AskInquiry("?", schema=SCHEMAS[name])


@action(pack="waits")
def asks_by_returning(name: str) -> AskInquiry:
    return AskInquiry("?", schema=SCHEMAS[name])


@action(pack="waits")
async def asks_and_goes_on(name: str) -> Any:
    return await ask("?", schema=SCHEMAS[name])


@action(pack="waits")
async def function_that_raises(ctx: DurableContext, name: str) -> None:
    raise AskInquiry("?", schema=SCHEMAS[name])


@action(pack="waits")
async def defaults(ctx: DurableContext) -> None:
    raise AskInquiry("?", schema={"type": "integer"}, default="no number", timeout=0.1)


@action(pack="waits")
def defaults_by_raising() -> None:
    raise AskInquiry("?", schema={"type": "integer"}, default="no number", timeout=0.1)


@action(pack="waits")
async def defaults_in_function(ctx: DurableContext) -> Any:
    return await ctx.ask("?", schema={"type": "integer"}, default="no number", timeout=0.1)


@action(pack="waits")
async def waits_for_nothing(ctx: DurableContext) -> Any:
    return await ctx.wait_for("waits.piad")


@action(pack="waits")
async def waits_for_action(ctx: DurableContext) -> Any:
    return await ctx.wait_for(asks_in_function)


@action(pack="waits")
async def waits_for_filter(ctx: DurableContext, name: str) -> Any:
    return await ctx.wait_for(paid, when=FILTERS[name])


@action(pack="waits")
async def waits_well(ctx: DurableContext) -> Any:
    system = await ctx.step("none", lambda: None)
    limits = {"order": 3}
    async with ctx.timeout("1m"):
        event = await ctx.wait_for(
            paid, when="event.payload.order == limits.order and event.tenant != none", limits=limits
        )
    return [system, event["payload"]]


@action(pack="waits")
async def asks_well(ctx: DurableContext) -> Any:
    return await ctx.ask("?", schema={"const": 3, "title": "three", "x-own": 1}, default=3, timeout=0.1)


ASKING = (asks_in_function, asks_by_raising, asks_by_returning, asks_and_goes_on, function_that_raises)
DEFAULTING = (defaults, defaults_by_raising, defaults_in_function)
WAITING = (waits_for_nothing, waits_for_action)
ALL = (*ASKING, *DEFAULTING, *WAITING, waits_for_filter, waits_well, asks_well, paid)


async def failure(house: Installation, id: UUID) -> str:
    with pytest.raises(ExecutionFailed) as error:
        await house.client.result(id, timeout=10)
    return str(error.value)


async def test_question_with_invalid_schema_fails(house: Installation) -> None:
    await house.start(*ALL)
    ids = {
        (asking.ref, name): await house.client.start(asking.ref, {"name": name})
        for asking in ASKING
        for name in SCHEMAS
    }
    for key, id in ids.items():
        assert "DefinitionError: the schema of the answer" in await failure(house, id), key
    assert await house.client.inquiries() == []
    well = await house.client.start(asks_well.ref)
    assert await house.client.result(well, timeout=10) == 3


async def test_question_whose_schema_refuses_its_default_fails(house: Installation) -> None:
    await house.start(*ALL)
    for id in [await house.client.start(asking.ref) for asking in DEFAULTING]:
        assert "the default answer: expected integer" in await failure(house, id)


async def test_wait_that_no_event_could_end_fails(house: Installation) -> None:
    await house.start(*ALL)
    ids = [await house.client.start(waiting.ref) for waiting in WAITING]
    filtered = {name: await house.client.start(waits_for_filter.ref, {"name": name}) for name in FILTERS}
    for id in ids:
        assert "there is no trigger" in await failure(house, id)
    for name, id in filtered.items():
        assert "DefinitionError: the condition `" in await failure(house, id), name
    well = await house.client.start(waits_well.ref)
    await house.until("select 1 from event_wait")
    await house.client.publish("waits.paid", {"order": 3})
    assert await house.client.result(well, timeout=10) == [None, {"order": 3}]
