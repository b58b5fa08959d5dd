"""Partitions of the next days are made beside the work: no session waits for them, however long another one reads a table."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from penstock.service.assembly import Parts
from penstock.store.upkeep import retention
from penstock_executor.loops import make_partitions
from tests.flows.installation import Installation

MOVE = "insert into history (execution_id, new, attempt, at) values (gen_random_uuid(), 'x', 1, clock_timestamp())"
DUE = "insert into fire (schedule, due_at, status, kind, definition_id) values ('s', clock_timestamp(), 'created', 'due', 1)"
LAST_DAYS = """
select relname::text as name from pg_class where relispartition and relkind = 'r'
    and right(relname, 8) = to_char((now() at time zone 'utc')::date + 7, 'YYYYMMDD')
"""
SHORTEST_STOP = 1.0
"""Seconds that a statement may take here: on a busy machine, and with the waits of ten tries."""


@pytest.fixture
async def house(database: str) -> AsyncIterator[Installation]:
    async with Installation(database, None) as house:
        for name in await last_days(house):
            await house.rows(f"drop table {name}")
        yield house


async def last_days(house: Installation) -> set[str]:
    """Return the partitions of the last day that is made ahead."""
    return {row["name"] for row in await house.rows(LAST_DAYS)}


async def turn(parts: Parts) -> bool | float:
    return await make_partitions.turn(parts, parts.database.session())


@pytest.mark.parametrize("table", retention.PARTITIONED)
async def test_session_that_reads_a_table_stops_no_work(house: Installation, table: str) -> None:
    parts, longest, writes = await house.parts(), 0.0, 0
    async with parts.database.session().transaction() as reader:
        await reader.fetch(f"select count(*) from {table}")
        making = asyncio.create_task(turn(parts))
        while not making.done():
            began = time.monotonic()
            await house.rows(f"{MOVE} returning 1")
            await house.rows(f"{DUE} returning 1")
            await house.rows("select 1 from event where id = gen_random_uuid()")
            longest, writes = max(longest, time.monotonic() - began), writes + 1
            await asyncio.sleep(0.01)
        assert await making == make_partitions.AGAIN
        made = {name[:-9] for name in await last_days(house)}
        assert made == set(retention.PARTITIONED) - {table}
    assert longest < SHORTEST_STOP
    assert writes > 5
    assert await turn(parts) is False
    assert len(await last_days(house)) == len(retention.PARTITIONED)


async def test_transaction_that_writes_two_tables_makes_no_deadlock(house: Installation) -> None:
    """A cancellation that replaces a fire writes `fire` and then `history`."""
    parts = await house.parts()
    async with parts.database.session().transaction() as tx:
        await tx.fetch("lock table fire, fire_default in row exclusive mode")
        making = asyncio.create_task(turn(parts))
        await asyncio.sleep(0.5)
        await tx.fetch("lock table history, history_default in row exclusive mode")
        await asyncio.sleep(0.2)
    await making
    assert await turn(parts) is False
    assert len(await last_days(house)) == len(retention.PARTITIONED)


async def test_rows_that_come_while_the_day_is_made_are_kept(house: Installation) -> None:
    """After a week without an executor, the rows of today are in the default partition, and more come all the time."""
    today = (await house.rows("select to_char(now() at time zone 'utc', 'YYYYMMDD') as day"))[0]["day"]
    await house.rows(f"drop table history_{today}")
    parts = await house.parts()

    async def write() -> int:
        writes = 0
        while not making.done():
            await house.rows(f"{MOVE} returning 1")
            writes += 1
        return writes

    await house.rows(f"{MOVE} returning 1")
    making = asyncio.create_task(turn(parts))
    writes = sum(await asyncio.gather(*(write() for _ in range(3))))
    assert await making is False
    assert (await house.rows("select count(*) as count from history"))[0]["count"] == writes + 1
    assert (await house.rows("select count(*) as count from history_default"))[0]["count"] == 0
