"""The cost of upkeep, in rows and index entries that are read. Work that is to be done counts, and older rows do not, though
a reader holds its snapshot for hours and PostgreSQL cannot forget them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from penstock.messaging.relay import relay
from penstock.store.session.database import Session
from penstock.store.upkeep import scan_start
from penstock_executor.loops import archive_finished
from tests.flows import shop
from tests.flows.installation import Installation

FILL = """
with made as (
    insert into execution (id, status, namespace_id, definition_id, created_at, finished_at)
    select gen_random_uuid(), 'completed', (select min(id) from namespace), (select min(id) from definition), now(), now()
    from generate_series(1, $1) returning id
), given as (
    insert into payload (execution_id, params) select id, '{}' from made
), told as (
    insert into result (execution_id, result) select id, '1' from made
)
insert into finished (ids, at) select array[id], now() - interval '1 day' from made limit $2
"""
HOT = ["execution", "payload", "result", "untold", "finished"]
READ = (
    "select sum(seq_tup_read + idx_tup_fetch)::integer from pg_stat_xact_user_tables where relname = any($1)"
)
ENTRIES = """
select sum(pg_stat_get_xact_tuples_returned(indexrelid))::integer from pg_index where indrelid = $1::text::regclass
"""


@pytest.fixture
def transport() -> str:
    return "rabbitmq"


@asynccontextmanager
async def reading(house: Installation, database: str) -> AsyncIterator[None]:
    """Hold a transaction that keeps every version of every row."""
    connection = await asyncpg.connect(database)
    transaction = connection.transaction(isolation="repeatable_read")
    await transaction.start()
    await connection.fetchval("select count(*) from process")
    yield
    await transaction.rollback()
    await connection.close()


async def entries(session: Session, table: str, work: Callable[[Any], Awaitable[Any]]) -> int:
    """Index entries of a table that some work goes over in a transaction, those of dead rows too."""
    async with session.transaction() as tx:
        await tx.fetch("set local enable_seqscan = off")  # as if the table had grown
        [[before]] = await tx.fetch(ENTRIES, table)
        await work(tx)
        [[after]] = await tx.fetch(ENTRIES, table)
    return int(after - before)


async def test_archiving_some_reads_no_rows_of_others_though_it_was_planned_on_empty_tables(
    house: Installation,
) -> None:
    await house.apply(*shop.ALL)
    await house.client.start("shop.charge", {"order": 1})
    session = (await house.parts()).database.session()

    async def archived(count: int, finished: int) -> int:
        """Make so many, let so many of them be due, and archive those. Gives the rows that were read."""
        await session.fetch(FILL, count, finished)
        async with session.transaction() as tx:
            [[before]] = await tx.fetch(READ, HOT)
            [[moved, _last]] = await tx.fetch("select * from archive_finished('1 hour', 100)")
            assert moved == finished
            [[after]] = await tx.fetch(READ, HOT)
        return int(after - before)

    for _ in range(7):  # plans are made, and kept, while there is hardly anything
        await archived(1, 1)
    few = await archived(50, 50)
    assert few <= 400
    many = await archived(5000, 50)
    assert many <= few + 20, (few, many)


async def test_archived_executions_are_not_gone_through_again(house: Installation, database: str) -> None:
    await house.apply(*shop.ALL)
    await house.client.start("shop.charge", {"order": 1})
    parts = await house.parts()
    session = parts.database.session()
    async with reading(house, database):
        await session.fetch(FILL, 2000, 2000)
        while await archive_finished.turn(parts, session):
            pass
        await session.fetch(FILL, 20, 20)
        assert await entries(session, "finished", lambda tx: archive_finished.turn(parts, tx)) <= 200
        assert not await house.rows("select 1 from finished where at < now() - interval '1 hour'")


async def test_a_relay_begins_where_it_came_to_and_now_and_then_at_the_beginning(
    house: Installation, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = await house.parts()
    session = parts.database.session()
    await parts.transport.declare("execution.requested")
    stage = """
    insert into outbox (queue, ids, due_at)
    select 'execution.requested', array[gen_random_uuid()], clock_timestamp() - interval '1 minute' from generate_series(1, $1)
    """
    async with reading(house, database):
        await session.fetch(stage, 3000)
        await session.fetch("delete from outbox")  # as their publisher does
        assert await entries(session, "outbox", lambda tx: relay(parts.transport, tx, 0.0)) >= 3000

        # What lies below its place is passed over in the index, without a look at any row.
        assert await entries(session, "outbox", lambda tx: relay(parts.transport, tx, 0.0)) <= 20

        # What a transaction staged long ago and commits only now is found when it begins again.
        await session.fetch(stage, 1)
        assert await relay(parts.transport, session, 0.0) == 0
        monkeypatch.setattr(scan_start, "AGAIN", 0.0)
        assert await relay(parts.transport, session, 0.0) == 1
