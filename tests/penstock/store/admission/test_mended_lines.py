"""Lines that something has torn, as a repair puts them right: those that it is pointed at, and no others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from penstock import Limit
from tests.penstock.store.admission.desk import Desk, drained

REASON = "it stood in no line (penstock repair)"
PATIENCE = 20.0
"""Seconds."""
FIRST = """
select (l.rank, l.turn, l.ready_at, l.execution_id) = (w.rank, w.turn, w.ready_at, w.execution_id)
from lane l, waiter w where w.execution_id = $1 and l.id = $2
"""


async def mend(desk: Desk, *ids: UUID) -> set[UUID]:
    """Whom it asks an executor for."""
    [row] = await desk.session.fetch("select mend_lines($1::uuid[]) as messages", list(ids))
    return {id for message in row["messages"] for id in message["ids"]}


async def one_at_a_time(
    desk: Desk, count: int = 4, customers: Sequence[str] = ("a", "b")
) -> list[list[UUID]]:
    """Start executions of each customer: one has the slot and the others stand in line behind it."""
    await desk.open(Limit(1, ref="shop.one", scope="shop.charge", by="customer"))
    return [await desk.start(count, customer=customer) for customer in customers]


async def sql(desk: Desk, statement: str, *args: object) -> list[object]:
    return [row[0] for row in await desk.session.fetch(statement, *args)]


async def lane_of(desk: Desk, id: UUID) -> UUID:
    [lane] = await sql(desk, "select lane from waiter where execution_id = $1", id)
    assert isinstance(lane, UUID)
    return lane


async def in_line(desk: Desk) -> set[object]:
    return set(await sql(desk, "select execution_id from waiter"))


async def test_a_queued_execution_without_a_place_finds_its_old_place(desk: Desk) -> None:
    a, b = await one_at_a_time(desk)
    for lost in (a[2], b[2]):
        await sql(desk, "delete from waiter where execution_id = $1", lost)
    assert await mend(desk, a[2], a[3]) == {a[2]}
    assert await desk.statuses(a) == ["scheduled", "queued", "requested", "queued"]
    assert await desk.statuses(b) == ["scheduled", "queued", "queued", "queued"]
    assert (await desk.reasons([a[2], a[3], b[2]])) == [REASON, None, None]
    await desk.admit([a[2]])
    assert await desk.statuses(a) == ["scheduled", "queued", "queued", "queued"]
    assert await mend(desk, b[2]) == {b[2]}
    await desk.admit([b[2]])
    assert [n for n in await drained(desk, [*a, *b]) if n < 4] == [0, 1, 2, 3]
    await desk.sound()


async def test_an_unqueued_execution_in_line_leaves_it(desk: Desk) -> None:
    a, b = await one_at_a_time(desk)
    for odd in (a[1], a[3], b[1]):
        await sql(desk, "update execution set status = 'requested' where id = $1 returning id", odd)
        await sql(desk, "insert into live (execution_id) values ($1) returning execution_id", odd)
    assert await mend(desk, a[1], a[2]) == set()
    assert await in_line(desk) == {a[2], a[3], *b[1:]}
    assert await sql(desk, "select execution_id from lane where id = $1", await lane_of(desk, a[2])) == [a[2]]
    assert await mend(desk, a[3], b[1]) == set()
    assert await in_line(desk) == {a[2], *b[2:]}
    for odd in (a[1], a[3], b[1]):
        await desk.admit([odd])
    assert sorted(await drained(desk, [*a, *b])) == list(range(8))
    await desk.sound()


async def test_an_execution_in_a_missing_line_is_requested_again(desk: Desk) -> None:
    a, b, c = await one_at_a_time(desk, customers="abc")
    await sql(desk, "delete from lane where id <> $1 returning id", await lane_of(desk, c[1]))
    assert await mend(desk, *a, b[1]) == {*a[1:], b[1]}
    assert await in_line(desk) == {b[2], b[3], *c[1:]}
    assert await desk.statuses(a) == ["scheduled", "requested", "requested", "requested"]
    assert await desk.statuses(b) == ["scheduled", "requested", "queued", "queued"]
    assert await mend(desk, *b) == {b[2], b[3]}
    await desk.admit([*a[1:], *b[1:]])
    assert [n for n in await drained(desk, [*a, *b]) if n < 4] == [0, 1, 2, 3]
    await desk.sound()


async def test_an_empty_lane_is_deleted(desk: Desk) -> None:
    a, b, c = await one_at_a_time(desk, 2, "abc")
    lanes = [await lane_of(desk, ids[1]) for ids in (a, b, c)]
    for ids in (a, b):
        await sql(desk, "delete from waiter where execution_id = $1 returning lane", ids[1])
        await desk.cancel([ids[1]])
    assert await mend(desk, lanes[0], lanes[2]) == set()
    assert set(await sql(desk, "select id from lane")) == set(lanes[1:])
    assert await mend(desk, lanes[1]) == set()
    await desk.sound()


async def test_a_lane_learns_its_first_again_and_admits_it(desk: Desk) -> None:
    a, b = await one_at_a_time(desk)
    lanes = [await lane_of(desk, ids[1]) for ids in (a, b)]
    for ids, lane in zip((a, b), lanes, strict=True):
        await sql(
            desk,
            "update lane set (rank, turn, ready_at, execution_id) = (select rank, turn, ready_at, execution_id"
            " from waiter where execution_id = $1) where id = $2 returning id",
            *(ids[3], lane),
        )
    await sql(desk, "delete from slot where execution_id = $1 returning attempt", b[0])
    assert await mend(desk, lanes[0]) == set()
    assert await sql(desk, FIRST, a[1], lanes[0]) == [True]
    assert await sql(desk, FIRST, b[3], lanes[1]) == [True]
    assert await mend(desk, lanes[1]) == {b[1]}  # there is room before it
    assert await sql(desk, FIRST, b[2], lanes[1]) == [True]


async def test_its_keys_are_locked_before_anything_is_looked_at(desk: Desk) -> None:
    """A session that holds a key may be taking an execution out of its line."""
    [a] = await one_at_a_time(desk, 2, "a")
    async with desk.database.session().transaction() as tx:
        await tx.fetch(
            "select lock_keys(array(select (limit_id, group_value)::limit_key from slot where execution_id = $1))",
            a[0],
        )
        mending = asyncio.create_task(mend(desk, await lane_of(desk, a[1])))
        async with asyncio.timeout(PATIENCE):
            while not await tx.fetch("select from pg_locks where not granted and locktype = 'advisory'"):
                await asyncio.sleep(0.01)
        await tx.fetch("update lane set execution_id = $1", a[0])
    assert await mending == set()
    assert await sql(desk, "select execution_id from lane") == [a[1]]
    await desk.sound()


async def test_an_unqueued_execution_leaves_after_its_keys_are_locked(desk: Desk) -> None:
    [a] = await one_at_a_time(desk, 2, "a")
    await sql(desk, "update execution set status = 'requested' where id = $1 returning id", a[1])
    await sql(desk, "insert into live (execution_id) values ($1) returning execution_id", a[1])
    async with desk.database.session().transaction() as tx:
        await tx.fetch("select lock_keys(keys) from lane")
        mending = asyncio.create_task(mend(desk, a[1]))
        async with asyncio.timeout(PATIENCE):
            while not await tx.fetch("select from pg_locks where not granted and locktype = 'advisory'"):
                await asyncio.sleep(0.01)
        assert await tx.fetch("select 1 from waiter for update nowait")
    assert await mending == set()
    assert await in_line(desk) == set()


async def test_an_execution_that_changes_lanes_is_found_in_the_new_one(desk: Desk) -> None:
    a, b = await one_at_a_time(desk, 2)
    lane = await lane_of(desk, b[1])
    async with desk.database.session().transaction() as tx:
        await tx.fetch("select from execution where id = $1 for no key update", a[1])
        mending = asyncio.create_task(mend(desk, a[1]))
        async with asyncio.timeout(PATIENCE):
            while not await tx.fetch("select from pg_locks where not granted"):
                await asyncio.sleep(0.01)
        await tx.fetch("update waiter set lane = $2 where execution_id = $1", a[1], lane)
    await mending
    assert await sql(desk, FIRST, a[1], lane) == [True]
