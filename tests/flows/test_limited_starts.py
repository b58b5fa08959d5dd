"""Starts under limits: admitted or put in line by the statement that stores them, where that has to wait for no lock
for long."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from penstock import Limit, action
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

BEGUN: list[int] = []
LOCK = """
select pg_advisory_lock_shared(7, -1), pg_advisory_lock(7, key_lock(k))
from (select (id, '')::limit_key from concurrency_limit) l (k)
"""


@action(pack="door", limits=[Limit(1)])
async def enter(n: int) -> int:
    BEGUN.append(n)
    return n


async def test_starts_awaited_one_after_the_other_begin_in_that_order(house: Installation) -> None:
    await house.start(enter)
    BEGUN.clear()
    ids = [await house.client.start("door.enter", {"n": n}) for n in range(12)]
    for id in ids:
        await house.client.result(id, timeout=20)
    assert list(range(12)) == BEGUN
    await house.quiet()
    await house.sound()


async def test_a_start_is_admitted_or_waits_as_soon_as_it_is_stored(house: Installation) -> None:
    await house.apply(enter)
    await (await house.parts()).transport.declare("work.default")  # there is no relay
    await house.worker(enter)  # and no executor
    await house.until("select 1 from process")
    for n in range(3):
        await house.client.start("door.enter", {"n": n})
    assert await house.until(
        "select 1 from execution having count(*) filter (where status = 'completed') = 3"
    )
    await house.sound()


async def test_more_than_a_few_without_room_are_left_to_an_executor(house: Installation) -> None:
    await house.apply(enter)
    await house.client.start_many("door.enter", [{"n": n} for n in range(11)])
    assert await house.statuses() == {"requested": 11}


async def test_a_start_that_found_its_key_locked_is_not_overtaken(house: Installation, database: str) -> None:
    """No executor runs, as where the broker is away."""
    await house.apply(enter)
    await (await house.parts()).transport.declare("work.default")
    await house.worker(enter)
    await house.until("select 1 from process")
    BEGUN.clear()
    first = await house.client.start("door.enter", {"n": 0})
    await house.client.result(first, timeout=20)
    holder = await asyncpg.connect(database)
    await holder.fetch(LOCK)
    second = asyncio.create_task(house.client.start("door.enter", {"n": 1}))
    await house.until("select 1 from outbox where queue = 'execution.requested'")
    await holder.close()
    ids = [await second] + [await house.client.start("door.enter", {"n": n}) for n in range(2, 8)]
    for id in ids:
        await house.client.result(id, timeout=20)
    assert list(range(8)) == BEGUN
    await house.sound()


async def test_a_start_does_not_wait_for_long_for_the_lock_of_a_key(
    house: Installation, database: str
) -> None:
    await house.apply(enter)
    holder = await asyncpg.connect(database)
    await holder.fetch(LOCK)
    await house.client.start("door.enter", {"n": 1})
    assert await house.statuses() == {"requested": 1}
    assert await house.rows("select 1 from outbox where queue = 'execution.requested'")
    await holder.close()
    await house.start(enter)
    await house.until("select 1 from execution where status = 'completed'")
    await house.sound()


async def test_a_start_in_a_transaction_of_the_callers_own_locks_no_key(
    house: Installation, database: str
) -> None:
    await house.start(enter)
    mine = await asyncpg.connect(database)
    async with mine.transaction():
        first = await house.client.start("door.enter", {"n": 1}, connection=mine)
        second = await house.client.start("door.enter", {"n": 2})
        assert await house.client.result(second, timeout=20) == 2
    assert await house.client.result(first, timeout=20) == 1
    await mine.close()
    await house.sound()


async def test_a_waiting_execution_begins_in_the_commit_of_an_end(house: Installation) -> None:
    """From the second on: the first end has shown that ends admit executions."""
    await house.start(enter)
    ids = await house.client.start_many("door.enter", [{"n": n} for n in range(8)])
    for id in ids:
        await house.client.result(id, timeout=20)
    together = await house.rows("""
        select count(*) as count from history ended join history begun on begun.xmin = ended.xmin
        where ended.new = 'completed' and begun.new = 'running' and begun.execution_id <> ended.execution_id""")
    assert together[0]["count"] >= 5
    await house.quiet()
    await house.sound()
