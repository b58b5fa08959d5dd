"""The contract of the transport on PostgreSQL alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import asyncpg
import orjson
import pytest
from pydantic import SecretStr

from penstock.messaging.transports.postgres import PostgresTransport, heard_by, scan_range
from penstock.messaging.transports.postgres.scan_range import EVERYTHING
from penstock.settings import Settings
from penstock.store.outbox import outbox, outbox_queue
from penstock.store.outbox.outbox_queue import TAKE
from penstock.store.session.database import Database, Session
from tests.penstock.messaging.transports.traffic import QUEUE, bodies, message, receive
from tests.servers.postgres import Postgres


async def test_a_message_published_before_a_close_wakes_its_consumer(database: str) -> None:
    home = Database(Settings(database_url=SecretStr(database), poll_interval=3600), role="test")
    waiting = PostgresTransport(home)
    await waiting.open()
    subscription = await waiting.subscribe(QUEUE, 10)
    try:
        for n in range(20):
            passing = PostgresTransport(home)
            await passing.open()
            await passing.publish([message(str(n))])
            await passing.close()
            assert bodies(await receive(subscription, 1, ack=True)) == [str(n)]
    finally:
        await waiting.close()
        await home.close()


async def test_a_wake_up_that_cannot_be_sent_leaves_no_task_with_an_error_behind(
    private_postgres: Callable[[], Postgres],
) -> None:
    server = await asyncio.to_thread(private_postgres)
    home = Database(Settings(database_url=SecretStr(server.dsn())), role="test")
    transport = PostgresTransport(home)
    await transport.open()
    try:
        await asyncio.to_thread(server.kill)
        transport.wake({QUEUE})
        [waking] = [task for task in asyncio.all_tasks() if task.get_name() == "notify"]
        await asyncio.wait([waking])
        assert waking.exception() is None
    finally:
        await transport.close()
        await home.close()


@pytest.mark.parametrize("closed", [False, True])
async def test_cancelled_take_loses_no_leased_rows(
    database: str, monkeypatch: pytest.MonkeyPatch, closed: bool
) -> None:
    """Cancelled between the commit of a take and its answer, as a consumer that is told to stop is."""
    home = Database(Settings(database_url=SecretStr(database), poll_interval=3600), role="test")
    transport = PostgresTransport(home)
    await transport.open()
    committed, answered = asyncio.Event(), asyncio.Event()
    take = outbox_queue.take

    async def slow(*args: Any) -> list[outbox_queue.Taken]:
        rows = await take(*args)
        if rows:
            committed.set()
            await answered.wait()
        return rows

    try:
        subscription = await transport.subscribe(QUEUE, 10)
        monkeypatch.setattr(outbox_queue, "take", slow)
        waiting = asyncio.ensure_future(subscription.receive(10))
        await transport.publish([message("0")])
        await asyncio.wait_for(committed.wait(), 30)
        waiting.cancel()
        await asyncio.wait([waiting])
        asyncio.get_running_loop().call_later(0.1, answered.set)
        if closed:
            await asyncio.gather(subscription.close(), subscription.close())  # as its transport may, too
            subscription = await transport.subscribe(QUEUE, 10)
        assert bodies(await receive(subscription, 1, ack=True)) == ["0"]
    finally:
        await transport.close()
        await home.close()


STAGED = """
insert into outbox (queue, ids, body, message_id, type, headers, due_at)
values ($1, '{}', $2, 'late', 'test', '{}', clock_timestamp() - make_interval(secs => $3)) returning id
"""


@pytest.mark.parametrize("seconds", [5, 300])
async def test_a_message_of_a_long_transaction_arrives_at_its_commit(
    database: str, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(scan_range, "ALL_AGAIN", 0.2)
    home = Database(Settings(database_url=SecretStr(database), poll_interval=3600), role="test")
    transport = PostgresTransport(home)
    await transport.open()
    try:
        subscription = await transport.subscribe(QUEUE, 10)
        await transport.publish([message("0")])
        assert bodies(await receive(subscription, 1, ack=True)) == ["0"]
        taking = asyncio.ensure_future(receive(subscription, 1, ack=True))
        await asyncio.sleep(1)
        connection = await asyncpg.connect(database)
        await connection.fetch(STAGED, QUEUE, b"late", seconds)
        await connection.close()
        transport.wake({QUEUE})
        assert bodies(await asyncio.wait_for(taking, 30)) == ["late"]
    finally:
        await transport.close()
        await home.close()


async def test_a_look_skips_taken_rows_while_a_reader_holds_a_snapshot(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Database(Settings(database_url=SecretStr(database), poll_interval=3600), role="test")
    transport = PostgresTransport(home)
    await transport.open()
    reader, connection = await asyncpg.connect(database), await asyncpg.connect(database)
    await connection.execute("set enable_seqscan = off; set enable_bitmapscan = off")
    try:
        await reader.execute("begin isolation level repeatable read; select from outbox")
        subscription = await transport.subscribe(QUEUE, 100)
        for _ in range(20):
            await transport.publish([message(str(n)) for n in range(100)])
            await receive(subscription, 100, ack=True)
        monkeypatch.setattr(scan_range, "NEAR", 0.0)
        monkeypatch.setattr(scan_range, "FAR_AGAIN", 3600.0)

        async def pages(reach: float) -> int:
            async with connection.transaction():
                [[plan]] = await connection.fetch(
                    "explain (analyze, buffers, format json) " + TAKE, QUEUE, 10, 60.0, reach, 2**20, None
                )
            found = orjson.loads(plan)[0]["Plan"]
            return int(found["Shared Hit Blocks"] + found["Shared Read Blocks"])

        everything, now = await pages(EVERYTHING), await pages(subscription.look.reach())
        assert everything > 50, "the reader keeps what was taken"
        assert now < everything / 5
    finally:
        await reader.close()
        await connection.close()
        await transport.close()
        await home.close()


async def test_message_after_message_costs_one_look_each(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_range, "FAR_AGAIN", 3600.0)
    looks = 0
    take = outbox_queue.take

    async def counted(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        return await take(*args)

    monkeypatch.setattr(outbox_queue, "take", counted)
    home = Database(Settings(database_url=SecretStr(database), poll_interval=3600), role="test")
    consuming, publishing = PostgresTransport(home), PostgresTransport(home)
    await consuming.open()
    await publishing.open()
    try:
        subscription = await consuming.subscribe(QUEUE, 10)
        for n in range(20):
            await publishing.publish([message(str(n))])
            assert bodies(await receive(subscription, 1, ack=True)) == [str(n)]
        # A look can take a message whose wake-up is still under way, which then costs an empty look.
        assert looks <= 1 + 20, "the first look, and at most one after each wake-up"
    finally:
        await consuming.close()
        await publishing.close()
        await home.close()


@pytest.mark.parametrize(
    ("role", "queue", "others"), [("worker", "work.default", "dead"), ("executor", "dead", "work.default")]
)
async def test_a_process_hears_of_the_queues_that_its_role_consumes_and_of_no_others(
    database: str, role: str, queue: str, others: str
) -> None:
    home = Database(Settings(database_url=SecretStr(database), poll_interval=3600), role="test")
    consuming = PostgresTransport(home, hears=heard_by(role))
    publishing = PostgresTransport(home, hears=heard_by("client"))
    await consuming.open()
    await publishing.open()
    try:
        subscription, strange = await consuming.subscribe(queue, 10), await consuming.subscribe(others, 10)
        for one in (subscription, strange):
            one.wake.clear()
        publishing.wake({others})
        publishing.wake({queue})
        await asyncio.wait_for(subscription.wake.wait(), 30)
        assert not strange.wake.is_set()
        listener = await consuming.listen()
        await publishing.broadcast(b"to everybody")
        [heard] = await asyncio.wait_for(listener.receive(1), 30)
        assert heard.body == b"to everybody"
    finally:
        await consuming.close()
        await publishing.close()
        await home.close()


async def test_a_look_that_failed_is_made_again(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No wake-up comes for a message that came before."""
    monkeypatch.setattr(scan_range, "FAR_AGAIN", 3600.0)
    home = Database(Settings(database_url=SecretStr(database), poll_interval=3600), role="test")
    transport = PostgresTransport(home)
    await transport.open()
    try:
        subscription = await transport.subscribe(QUEUE, 10)
        take, looking, fails = outbox_queue.take, asyncio.Event(), asyncio.Event()

        async def failing(*_: Any) -> Any:
            looking.set()
            await fails.wait()
            raise LookupError("on purpose")

        monkeypatch.setattr(outbox_queue, "take", failing)
        await transport.publish([message("early")])
        first = asyncio.ensure_future(subscription.receive(10))
        await asyncio.wait_for(looking.wait(), 30)
        await asyncio.sleep(0.2)  # until what woke it is heard by way of PostgreSQL, too
        subscription.wake.clear()
        fails.set()
        with pytest.raises(LookupError):
            await asyncio.wait_for(first, 30)
        monkeypatch.setattr(outbox_queue, "take", take)
        assert bodies(await receive(subscription, 1, ack=True)) == ["early"]
    finally:
        await transport.close()
        await home.close()


async def test_acked_messages_are_deleted_together_and_settings_stay(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[int] = []
    delete = outbox.delete_settled

    async def counted(session: Session, ids: Sequence[int]) -> None:
        deleted.append(len(ids))
        await delete(session, ids)

    monkeypatch.setattr(outbox, "delete_settled", counted)
    home = Database(
        Settings(database_url=SecretStr(database), poll_interval=3600, database_connections=2), role="test"
    )
    transport = PostgresTransport(home)
    await transport.open()
    try:
        subscription = await transport.subscribe(QUEUE, 10)
        await transport.publish([message(str(n)) for n in range(5)])
        for delivery in await receive(subscription, 5):
            await subscription.ack([delivery])
        session = home.session()
        async with asyncio.timeout(30):
            while (await session.fetch("select count(*) from outbox where queue = $1", QUEUE))[0][0]:
                await asyncio.sleep(0.05)
        assert deleted == [5]
        [[kept]] = await session.fetch("show synchronous_commit")
        assert kept == "on", "who decides on the same connection waits for the disk"
    finally:
        await transport.close()
        await home.close()
