"""Signals to durable functions that are named by the idempotency key of their start."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from penstock import DurableContext, action, current
from penstock.client.durable_commands import signal
from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.store.executions import executions
from penstock.store.upkeep.retention import delete_old_keys
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport


@action(pack="orders")
async def place(ctx: DurableContext, order: int) -> Any:
    return await ctx.signal("paid")


@action(pack="orders")
async def plain(order: int) -> int:
    return order


@action(pack="orders")
async def tell(key: str, value: Any, transactional: bool = False) -> Any:
    if transactional:
        await current().signal(key=key, name="paid", value=value, transactional=True)
        return None
    sent = await current().signal(key=key, name="paid", value=value)
    return [sent.is_awaited, str(sent.execution_id)]


def _tell(key: str, value: Any) -> Any:
    sent = current().sync.signal(key=key, name="paid", value=value)
    assert sent is not None
    return [sent.is_awaited, str(sent.execution_id)]


@action(pack="orders", executor="thread")
def tell_in_thread(key: str, value: Any) -> Any:
    return _tell(key, value)


@action(pack="orders", executor="process")
def tell_in_process(key: str, value: Any) -> Any:
    return _tell(key, value)


ALL = (place, plain, tell, tell_in_thread, tell_in_process)
SUSPENDED = "select 1 from suspended where execution_id = $1"
BLOCKED = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


async def test_client_signals_the_function_with_the_key_of_its_tenant(house: Installation) -> None:
    await house.start(*ALL)
    theirs = await house.client.start("orders.place", {"order": 7}, key="order-7", tenant="acme")
    ours = await house.client.start("orders.place", {"order": 7}, key="order-7")
    for id in (theirs, ours):
        await house.until(SUSPENDED, id)
    sent = await house.client.signal(key="order-7", tenant="acme", name="paid", value=1)
    assert (sent.execution_id, sent.is_awaited, sent.awaits) == (theirs, True, ["paid"])
    assert (await house.client.signal(key="order-7", name="paid", value=2)).execution_id == ours
    assert [await house.client.result(id, timeout=20) for id in (theirs, ours)] == [1, 2]
    await house.quiet()
    await house.sound()


async def test_unknown_key_is_refused_with_where_to_look(house: Installation) -> None:
    await house.start(*ALL)
    await house.client.start("orders.place", {"order": 7}, key="order-7", tenant="acme")
    with pytest.raises(
        NotFound, match="no execution of tenant public was started with the key 'order-7'"
    ) as refused:
        await house.client.signal(key="order-7", name="paid")
    assert "the tenant of that start" in (refused.value.hint or "")
    assert not await house.rows("select 1 from step where name = 'signal/paid'")


async def test_ended_function_is_refused_by_key_as_by_id(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("orders.place", {"order": 7}, key="order-7")
    await house.client.signal(key="order-7", name="paid", value=1)
    await house.client.result(id, timeout=20)
    other = await house.client.start("orders.plain", {"order": 7}, key="plain-7")
    await house.client.result(other, timeout=20)
    for _ in ("hot", "archived"):
        for key, execution in (("order-7", id), ("plain-7", other)):
            with pytest.raises(Conflict) as by_id:
                await house.client.signal(execution, "paid", 1)
            with pytest.raises(Conflict) as by_key:
                await house.client.signal(key=key, name="paid", value=1)
            assert (by_key.value.message, by_key.value.hint) == (by_id.value.message, by_id.value.hint)
        await house.rows("select * from archive_finished(interval '0', 100)")
    assert not await house.rows("select 1 from execution")


async def test_key_that_is_used_again_names_the_open_function(house: Installation) -> None:
    await house.start(*ALL)
    first = await house.client.start("orders.place", {"order": 7}, key="order-7")
    await house.client.signal(key="order-7", name="paid", value=1)
    await house.client.result(first, timeout=20)
    await house.rows("select * from archive_finished(interval '0', 100)")
    await house.rows("update idempotency set created_at = now() - interval '31 days'")
    async with house.session.transaction() as tx:
        await delete_old_keys(tx, "idempotency", 30)
    second = await house.client.start("orders.place", {"order": 7}, key="order-7")
    assert second != first
    assert (await house.client.signal(key="order-7", name="paid", value=2)).execution_id == second
    assert await house.client.result(second, timeout=20) == 2


async def test_key_of_an_open_function_outlives_its_retention(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("orders.place", {"order": 7}, key="order-7")
    await house.rows("update idempotency set created_at = now() - interval '400 days'")
    async with house.session.transaction() as tx:
        await delete_old_keys(tx, "idempotency", 30)
    assert (await house.client.signal(key="order-7", name="paid", value=1)).execution_id == id
    assert await house.client.result(id, timeout=20) == 1


async def test_signal_during_an_uncommitted_start_finds_no_key(house: Installation, database: str) -> None:
    await house.start(*ALL)
    mine = await asyncpg.connect(database)
    async with mine.transaction():
        id = await house.client.start("orders.place", {"order": 7}, key="order-7", connection=mine)
        with pytest.raises(NotFound):
            await house.client.signal(key="order-7", name="paid", value=1)
    await mine.close()
    assert (await house.client.signal(key="order-7", name="paid", value=2)).execution_id == id
    assert await house.client.result(id, timeout=20) == 2


async def test_signal_that_finds_the_key_before_the_end_is_refused(house: Installation) -> None:
    """The signal looks up the key while another transaction ends the function, and waits for that transaction."""
    await house.apply(*ALL)
    id = await house.client.start("orders.place", {"order": 7}, key="order-7")
    database = (await house.parts()).database

    async def send() -> None:
        async with database.session().transaction() as tx:
            await signal(tx, None, "order-7", None, "paid", 1)

    async with asyncio.TaskGroup() as tasks:
        async with database.session().transaction() as tx:
            await executions.cancel(tx, [id], "by hand")
            sent = tasks.create_task(_refusal(send))
            await house.until(BLOCKED)
        await sent
    assert sent.result() == f"{id} has ended: it is cancelled"
    assert not await house.rows("select 1 from step where name = 'signal/paid'")


async def _refusal(send: Callable[[], Awaitable[None]]) -> str:
    with pytest.raises(Conflict) as refused:
        await send()
    return refused.value.message


async def test_actions_signal_by_key_from_all_executors(house: Installation) -> None:
    await house.start(*ALL)
    for ref in ("tell", "tell_in_thread", "tell_in_process"):
        receiver = await house.client.start("orders.place", {"order": 1}, key=ref, tenant="acme")
        await house.until(SUSPENDED, receiver)
        sender = await house.client.start(f"orders.{ref}", {"key": ref, "value": ref}, tenant="acme")
        assert await house.client.result(sender, timeout=30) == [True, str(receiver)]
        assert await house.client.result(receiver, timeout=20) == ref
    await house.quiet()
    await house.sound()


async def test_action_finds_no_key_of_another_tenant(house: Installation) -> None:
    await house.start(*ALL)
    await house.client.start("orders.place", {"order": 7}, key="order-7", tenant="acme")
    for transactional in (False, True):
        message = {"key": "order-7", "value": 1, "transactional": transactional}
        id = await house.client.start("orders.tell", message)
        await house.until("select 1 from execution where id = $1 and status = 'failed'", id)
        assert "NotFound" in (await house.client.why(id)).sentence
    assert not await house.rows("select 1 from step where name = 'signal/paid'")


@pytest.mark.parametrize(
    ("receiver", "reason"),
    [
        ({}, "one receiver"),
        ({"id": "id", "key": "order-7"}, "one receiver"),
        ({"id": "id", "tenant": "acme"}, "a tenant belongs to a key"),
        ({"key": ""}, "the key is empty"),
        ({"key": "a\0b"}, "NUL"),
        ({"key": "order-7", "tenant": "No Such"}, "not a valid tenant name"),
        ({"key": "order-7", "name": None}, "has no name"),
    ],
)
async def test_wrong_receivers_are_refused(
    house: Installation, receiver: dict[str, Any], reason: str
) -> None:
    id = await _started(house)
    arguments = {"name": "paid", **receiver, **({"id": id} if "id" in receiver else {})}
    with pytest.raises(InvalidInput, match=reason):
        await house.client.signal(**arguments)


async def _started(house: Installation) -> Any:
    await house.apply(*ALL)
    return await house.client.start("orders.place", {"order": 7}, key="order-7")
