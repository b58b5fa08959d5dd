"""The tables of a live installation vanish, or the rights on them, and come back. Services wait, and take it for a fault of no
message and of no attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import urlsplit

import asyncpg
import pika
import pytest
from pydantic import SecretStr

from penstock import Rule, Trigger, action
from penstock.errors import ConnectionFailed, NotMigrated
from penstock.settings import Settings
from penstock.store.schema import functions, migrate
from penstock.store.session.database import Database, is_transient
from tests.flows.installation import AS_USED, Installation
from tests.servers import databases

AWAY_S = 3.0
ENDS: list[asyncio.Event] = []
"""The ends of the attempts of `moor`, which the test sets."""
arrived = Trigger("dock.arrived", schema={"type": "object", "required": ["n"]})


@action(pack="dock")
async def unload(n: int) -> int:
    return n


@action(pack="dock")
async def moor() -> str:
    end = asyncio.Event()
    ENDS.append(end)
    await end.wait()
    return "moored"


on_arrival = Rule("dock.on_arrival", trigger=arrived, action=unload, params={"n": "{{ payload.n }}"})
ALL = (arrived, on_arrival, unload, moor)


def rights(database: str, words: str) -> str:
    """Return statements that give (`grant {} to`) or take (`revoke {} from`) the services' use of the schema."""
    users = [urlsplit(databases.as_service(database, service)).username for service in ("executor", "worker")]
    return "; ".join(words.format("usage on schema public") + f' "{user}"' for user in users)


CAUSES: dict[str, Callable[[str], tuple[str, str]]] = {
    "tables": lambda _: ("alter schema public rename to gone", "alter schema gone rename to public"),
    "rights": lambda database: (
        f"revoke usage on schema public from public; {rights(database, 'revoke {} from')}",
        f"grant usage on schema public to public; {rights(database, 'grant {} to')}",
    ),
}


@pytest.mark.parametrize("cause", CAUSES)
async def test_services_wait_for_tables_and_rights(database: str, vhost: str, cause: str) -> None:
    """An event from outside arrives meanwhile, and an attempt ends."""
    ENDS.clear()
    away, back = CAUSES[cause](database)
    connection = await asyncpg.connect(database)
    async with Installation(database, vhost, **AS_USED) as house:
        await house.start(*ALL)
        id = await house.client.start(moor)
        await house.until("select from execution where status = 'running'")
        await connection.execute(away)
        try:
            ENDS[0].set()
            await asyncio.to_thread(publish, vhost, 5)
            await asyncio.sleep(AWAY_S)
        finally:
            await connection.execute(back)
            await connection.close()
        assert await house.client.result(id, timeout=30) == "moored"
        await house.until(
            "select from enforcement where execution_id is not null having count(*) = 5", seconds=30
        )
        await house.quiet()
        assert await house.statuses() == {"completed": 6}
        assert not await house.rows("select from dead_letter")
        assert len(ENDS) == 1
        await house.sound()


def publish(vhost: str, count: int) -> None:
    """Publish events as a program that knows only the broker."""
    connection = pika.BlockingConnection(pika.URLParameters(vhost))
    channel = connection.channel()
    channel.confirm_delivery()
    for n in range(count):
        properties = pika.BasicProperties(message_id=f"m-{n}", delivery_mode=2)
        channel.basic_publish("penstock.events", arrived.ref, b'{"n": %d}' % n, properties, mandatory=True)
    connection.close()


@pytest.mark.either_transport
async def test_services_go_on_with_tables_that_were_created_again(
    empty_database: str, broker: str | None
) -> None:
    """Open sessions know types and functions of the earlier tables by numbers that no longer exist."""
    settings = Settings(database_url=SecretStr(empty_database))
    await migrate.upgrade(settings)
    connection = await asyncpg.connect(empty_database)
    async with Installation(empty_database, broker, **AS_USED) as house:
        await house.start(*ALL)
        assert await house.client.run(unload, {"n": 1}, timeout=30) == 1
        await connection.execute("drop schema public cascade; create schema public")
        await connection.close()
        await asyncio.sleep(AWAY_S)
        await migrate.upgrade(settings)
        await house.apply(*ALL)
        for n in range(3):
            assert await house.client.run(unload, {"n": n}, timeout=30) == n
        await house.quiet()
        assert not await house.rows("select from dead_letter")
        await house.sound()


async def test_missing_trigger_makes_an_incomplete_schema(database: str) -> None:
    """A restore creates triggers last. Without them, rows could be written that they do not permit."""
    connection = await asyncpg.connect(database)
    transaction = connection.transaction()
    await transaction.start()
    try:
        await functions.check(connection.fetch)
        await connection.execute("drop trigger execution_moved on execution")
        with pytest.raises(NotMigrated, match=r"1 triggers .*execution_moved"):
            await functions.check(connection.fetch)
    finally:
        await transaction.rollback()
        await connection.close()


async def test_faulty_statement_is_no_missing_schema(database: str) -> None:
    """It is tried once more in a new session, and then counts as a fault of its own."""
    home = service(database)
    session = home.session()
    try:
        with pytest.raises(ConnectionFailed, match="earlier schema"):
            await session.fetch("select from no_such_table")
        with pytest.raises(NotMigrated) as refused:
            await session.fetch("select from no_such_table")
        assert not is_transient(refused.value)
        assert await session.fetch("select 1 from execution") == []
    finally:
        await home.close()


async def test_no_statement_runs_until_the_schema_is_complete(database: str) -> None:
    """The tables are there again, but not yet their triggers."""
    home = service(database)
    session = home.session()
    connection = await asyncpg.connect(database)
    try:
        await connection.execute("alter schema public rename to gone")
        try:
            for _ in range(2):
                with pytest.raises((ConnectionFailed, NotMigrated)) as refused:
                    await session.fetch("select from execution")
                assert is_transient(refused.value)
            await connection.execute("alter trigger execution_moved on gone.execution rename to other")
            await connection.execute("alter schema gone rename to public")
            with pytest.raises(NotMigrated, match="execution_moved") as refused:
                await session.fetch("select from execution")
            assert is_transient(refused.value)
            with pytest.raises(NotMigrated, match="execution_moved"):
                async with session.transaction() as tx:
                    await tx.fetch("select from execution")
        finally:
            if await connection.fetchval("select to_regnamespace('gone') is not null"):
                await connection.execute("alter schema gone rename to public")
            await connection.execute("alter trigger other on execution rename to execution_moved")
        assert await session.fetch("select from execution") == []
    finally:
        await connection.close()
        await home.close()


async def test_first_statement_of_a_session_of_its_own_finds_the_schema_missing(empty_database: str) -> None:
    """A heartbeat takes its lock as it connects."""
    home = service(empty_database)

    async def opened(connection: asyncpg.Connection[asyncpg.Record]) -> None:
        await connection.fetch("select from process")

    try:
        with pytest.raises(NotMigrated) as refused:
            await home.session_of_its_own(opened).fetch("select 1")
        assert is_transient(refused.value)
    finally:
        await home.close()


def service(database: str) -> Database:
    """Return the database as a service has it, which waits for its schema."""
    settings = Settings(database_url=SecretStr(database))
    return Database(settings, role="test", check=functions.check)
