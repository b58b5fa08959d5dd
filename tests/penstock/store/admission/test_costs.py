"""The cost of a step does not depend on the number of waiters. Buffers are counted, not time. `python -m bench.backlog` does
the same with 100,000."""

from __future__ import annotations

from uuid import UUID

import orjson
import pytest

from penstock import Limit
from tests.penstock.store.admission.desk import FINISH as FINISHED
from tests.penstock.store.admission.desk import Desk

HOT = Limit(10, ref="shop.hot", scope="shop")
EACH = Limit(2, ref="shop.each", scope="shop.charge", by="customer")
FINISH = """
explain (analyze, buffers, format json) select * from finish_attempts($1, $2::uuid[], $3::smallint[],
    array['completed', 'completed'], null, null, null, null, null, '{}', '{}')
"""
SCHEDULE = "explain (analyze, buffers, format json) select * from schedule_executions($1::uuid[])"


async def buffers(desk: Desk, sql: str, *steps: tuple[object, ...]) -> int:
    """Return the buffers that the last of these steps touches, with the functions that it calls. Steps before it fill
    caches. Each has rows of its own, since an update leaves the next one on the same page less room."""
    session = desk.database.session()
    for arguments in steps:
        [[text]] = await session.fetch(sql, *arguments)
    plan = orjson.loads(text)[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


async def wait(desk: Desk, count: int, customers: int) -> list[UUID]:
    ids = []
    for n in range(count):
        ids += await desk.request(1, customer=n % customers)
    await desk.admit(ids)
    return ids


async def turnover(desk: Desk) -> int:
    """Two of them end, and two are let in."""
    rows = await desk.session.fetch(
        "select id from execution where status = 'running' order by ready_at limit 4"
    )
    ids = [row["id"] for row in rows]
    return await buffers(desk, FINISH, *((desk.worker, sorted(pair), [1, 1]) for pair in (ids[:2], ids[2:])))


@pytest.mark.parametrize(
    ("limits", "more"),
    [((HOT,), 24), ((HOT, EACH), 60)],
    ids=["one limit", "two limits, hundreds of lines"],
)
async def test_letting_one_in_costs_the_same_however_many_wait(
    desk: Desk, limits: tuple[Limit, ...], more: int
) -> None:
    await desk.open(*limits)
    ids = await wait(desk, 40, 500)
    await desk.claim(ids)
    await desk.session.fetch("analyze")
    few = await turnover(desk)
    await wait(desk, 1500, 500)
    many = await turnover(desk)
    # Some indexes may have become a level deeper. With hundreds of lines, one that goes on has its next one looked up and goes
    # to stand elsewhere, where the first few, of one each, were only dropped.
    assert many <= few + more, (few, many)
    await desk.sound()


READ = """
select sum(seq_tup_read + idx_tup_fetch)::integer from pg_stat_xact_user_tables
where relname in ('execution', 'waiter', 'lane', 'slot')
"""


async def test_letting_some_in_reads_no_more_rows_than_it_has_to(desk: Desk) -> None:
    await desk.open(HOT)
    await desk.session.fetch("analyze")
    ids = await wait(desk, 22, 500)
    await desk.run(ids[:1])  # plans are made while the tables are known as empty
    await wait(desk, 400, 500)
    await desk.claim(ids[1:11])
    async with desk.session.transaction() as tx:
        [[before]] = await tx.fetch(READ)  # of transactions before this one, too
        await tx.fetch(
            FINISHED, desk.worker, sorted(ids[1:11]), [1] * 10, ["completed"] * 10, [None] * 10, [0.0] * 10
        )
        [[after]] = await tx.fetch(READ)
    # Of ten that go and ten that come each row of theirs is looked up once or twice, and the slots are counted
    # once.
    assert after - before <= 70, after - before


async def test_of_more_lanes_than_there_is_room_for_only_the_first_are_read(desk: Desk) -> None:
    await desk.open(Limit(1, ref="ops.all", scope="*"))
    ids = await desk.start(5)
    read = []
    for _ in range(2):
        [running] = await desk.claim(ids)
        async with desk.session.transaction() as tx:
            [[before]] = await tx.fetch(READ)
            await tx.fetch(FINISHED, desk.worker, [running], [1], ["completed"], [None], [0.0])
            [[after]] = await tx.fetch(READ)
        read.append(after - before)
        for ref in ("shop.refund", "mail.send"):
            await desk.start(1, ref)
    assert read[0] == read[1]


async def test_work_of_another_limit_does_not_pay_for_a_backlog(desk: Desk) -> None:
    await desk.open(HOT)
    await wait(desk, 600, 500)
    others = [await desk.request(50, "mail.send") for _ in range(4)]
    await desk.session.fetch("vacuum analyze")
    few = await buffers(desk, SCHEDULE, (others[0],), (others[1],))
    await wait(desk, 1500, 500)
    await desk.session.fetch("vacuum analyze")  # as before the first look; what is dead is not the backlog
    many = await buffers(desk, SCHEDULE, (others[2],), (others[3],))
    assert many <= 1.05 * few, (few, many)
