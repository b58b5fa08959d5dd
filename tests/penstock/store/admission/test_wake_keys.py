"""`wake_keys`: the lanes that are looked at again once they are due. Each is there once as it should be woken, and
once for every reason not to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from penstock import Limit
from penstock.store.session.database import Row
from tests.penstock.store.admission.desk import Desk, blocked

EACH = Limit(1, ref="shop.each", scope="shop", by="customer")
LOCKED = """
select exists (select from pg_locks where pid = pg_backend_pid() and locktype = 'advisory' and classid = 7
    and objid::bigint = key_lock(($1, $2)::limit_key)) as locked
"""
"""Whether this transaction has the lock of a key."""


async def wakes(desk: Desk) -> list[tuple[int | None, str | None, bool]]:
    """Limit, value (None: of a namespace), and whether it is due."""
    rows = await desk.session.fetch(
        "select limit_id, group_value, at <= clock_timestamp() as due from wake order by at, limit_id, group_value"
    )
    return [(row["limit_id"], row["group_value"], row["due"]) for row in rows]


async def mark(desk: Desk, limit: int, value: str, seconds: float) -> None:
    """A wake row of a key, due in so many seconds."""
    await desk.session.fetch(
        "insert into wake (limit_id, group_value, at) values ($1, $2, clock_timestamp() + make_interval(secs => $3)) returning 1",
        *(limit, value, seconds),
    )


async def mark_space(desk: Desk, action: str, seconds: float) -> None:
    """Mark the same of a namespace."""
    await desk.session.fetch(
        "insert into wake (namespace_id, at) select id, clock_timestamp() + make_interval(secs => $2) "
        "from namespace where action = $1 returning 1",
        *(action, seconds),
    )


async def away(desk: Desk, action: str, *, is_away: bool) -> None:
    """Mark the action as one without a worker, or with one, without regard to the processes. This alone wakes no lane."""
    await desk.session.fetch(
        "update namespace set away_since = case when $2 then clock_timestamp() end where action = $1 returning 1",
        *(action, is_away),
    )


async def gates(desk: Desk) -> dict[str, str]:
    """Return the gates of lanes by their executions."""
    rows = await desk.session.fetch("select execution_id, gate_kind from lane")
    return {str(row["execution_id"]): row["gate_kind"] for row in rows}


async def wake(desk: Desk, most: int = 100) -> bool:
    [row] = await desk.session.fetch("select woken from wake_keys($1)", most)
    return bool(row["woken"])


async def room_for_one_more_of_each(desk: Desk) -> tuple[list[UUID], list[tuple[int, str]]]:
    """Let one execution wait before each of three keys, which have room, without a wake-up. Returns them, and the
    keys."""
    await desk.open(EACH, Limit(1, ref="mail.each", scope="mail", by="customer"))
    for customer in "ab":
        await desk.start(1, customer=customer)
    await desk.start(1, "mail.send", customer="a")
    ids: list[UUID] = []
    for customer in "ab":
        ids += await desk.start(1, customer=customer)
    ids += await desk.start(1, "mail.send", customer="a")
    await desk.session.fetch("delete from slot returning 1")
    keys = [
        (row["gate_limit"], row["gate_group"])
        for id in ids
        for row in await desk.session.fetch(
            "select gate_limit, gate_group from lane where execution_id = $1", id
        )
    ]
    await desk.session.fetch("with gone as (delete from wake returning 1) select count(*) from gone")
    return ids, keys


@pytest.mark.parametrize(("first", "other"), [(0, 1), (1, 0), (0, 2), (2, 0)])
async def test_keys_are_woken_the_one_first_that_was_due_first_and_no_more_than_are_asked_for(
    desk: Desk, first: int, other: int
) -> None:
    ids, keys = await room_for_one_more_of_each(desk)
    await mark(desk, *keys[other], -1)
    await mark(desk, *keys[first], -2)
    await mark(desk, *keys[first], 60)
    assert await wake(desk, 1)
    assert await desk.scheduled(ids) == [first]
    assert await wakes(desk) == [(*keys[other], True), (*keys[first], False)]


async def test_keys_that_are_not_due_are_not_woken_with_those_that_are(desk: Desk) -> None:
    ids, keys = await room_for_one_more_of_each(desk)
    await mark(desk, *keys[0], -1)
    await mark(desk, *keys[2], 60)
    assert await wake(desk)
    assert await desk.scheduled(ids) == [0]
    assert not await wake(desk), "nothing is due"


async def lanes_that_stood_aside(desk: Desk) -> list[UUID]:
    """Make lanes: two of charges and one of refunds, without workers, and a charge before a limit, older than all of
    them."""
    await desk.open(EACH)
    await desk.start(1, customer="x")
    before_a_limit = await desk.start(1, customer="x")
    for action in ("shop.charge", "shop.refund"):
        await away(desk, action, is_away=True)
    ids = [*before_a_limit, *await desk.start(1, customer="a"), *await desk.start(1, customer="b")]
    ids += await desk.start(1, "shop.refund", customer="c")
    await desk.session.fetch("with gone as (delete from wake returning 1) select count(*) from gone")
    assert await gates(desk) == {
        str(id): kind for id, kind in zip(ids, ("limit", "worker", "worker", "worker"), strict=True)
    }
    return ids


async def test_lanes_whose_worker_has_come_go_on_and_those_of_another_action_stay(desk: Desk) -> None:
    ids = await lanes_that_stood_aside(desk)
    for action in ("shop.charge", "shop.refund"):
        await away(desk, action, is_away=False)
    await mark_space(desk, "shop.charge", -1)
    await mark_space(desk, "shop.charge", 60)
    await mark_space(desk, "shop.refund", 60)
    assert await wake(desk)
    assert await desk.scheduled(ids) == [1, 2]
    assert await gates(desk) == {str(ids[0]): "limit", str(ids[3]): "worker"}
    assert await wakes(desk) == [(None, None, False)] * 2, "and nothing is to be done for them now"


async def test_lanes_of_an_action_that_turns_out_to_lack_workers_stay(desk: Desk) -> None:
    ids = await lanes_that_stood_aside(desk)
    await mark_space(desk, "shop.charge", -1)
    assert await wake(desk)
    assert await desk.scheduled(ids) == []
    assert await wakes(desk) == []


async def test_of_many_lanes_whose_worker_has_come_the_oldest_go_on_first(desk: Desk) -> None:
    ids = await lanes_that_stood_aside(desk)
    await away(desk, "shop.charge", is_away=False)
    for hours, id in ((1, ids[2]), (2, ids[0])):
        await desk.session.fetch(
            "update lane set ready_at = ready_at - make_interval(hours => $2) where execution_id = $1 returning 1",
            *(id, hours),
        )
    await mark_space(desk, "shop.charge", -1)
    assert await wake(desk, 1)
    assert await gates(desk) == {str(ids[0]): "limit", str(ids[1]): "worker", str(ids[3]): "worker"}
    assert await wakes(desk) == [(None, None, True)], "the other one is next"


async def test_keys_of_lanes_that_go_on_are_locked_and_no_others(desk: Desk) -> None:
    ids = await lanes_that_stood_aside(desk)
    await away(desk, "shop.charge", is_away=False)
    await mark_space(desk, "shop.charge", -1)
    keys = [
        row
        for id in (ids[1], ids[3])
        for row in await desk.session.fetch(
            "select (keys[1]).limit_id, (keys[1]).group_value from lane where execution_id = $1", id
        )
    ]
    async with desk.database.session().transaction() as tx:
        await tx.fetch("select * from wake_keys(100)")
        assert [(await tx.fetch(LOCKED, *key))[0]["locked"] for key in keys] == [True, False]


async def test_a_wait_for_the_lock_of_a_key_blocks_no_other_wake_row(desk: Desk) -> None:
    ids, keys = await room_for_one_more_of_each(desk)
    await mark(desk, *keys[0], -1)
    other = desk.database.session()
    async with desk.database.session().transaction() as tx:
        await tx.fetch("select lock_keys(array[($1, $2)::limit_key])", *keys[0])
        second = asyncio.ensure_future(other.fetch("select woken from wake_keys(100)"))
        await blocked(desk)
        await tx.fetch("select * from wake_keys(100)")
    assert not (await second)[0]["woken"], "the first one was there before"
    assert await desk.scheduled(ids) == [0]


FAIL_AND_RETRY = """
select messages from finish_attempts($1, $2::uuid[], array[1]::smallint[], array['requested'], array[null]::text[],
    array['{}'], array[0]::float8[], null, null, '{}'::uuid[], '{}'::uuid[])
"""


def hints(rows: Sequence[Row]) -> int:
    """Return the number of hints for executors among the messages of an answer: a timer or wake row is due soon."""
    return sum(message["queue"] == "timers.set" for message in rows[0][0])


async def schedule(desk: Desk, ids: Sequence[UUID]) -> list[Row]:
    """Handle `execution.requested`, and return the answer."""
    return await desk.session.fetch("select schedule_executions($1::uuid[])", sorted(ids))


async def test_next_start_of_a_rate_is_announced_once(desk: Desk) -> None:
    await desk.open(Limit(rate="1/s", ref="shop.rated", scope="shop"))
    ids = await desk.request(3)
    assert [hints(await schedule(desk, [id])) for id in ids] == [0, 1, 0]
    assert [is_due for _, _, is_due in await wakes(desk)] == [False]


async def test_probe_of_a_breaker_is_announced_once(desk: Desk) -> None:
    await desk.open(
        Limit(ref="shop.bank", scope="shop", breaker={"failures": 2, "of": 4, "within": "1h", "probe": "1s"})
    )
    ids = await desk.start(2)
    await desk.claim(ids)
    # Without an execution that waits, executors have nothing to do then.
    assert [hints(await desk.finish([id], "failed")) for id in ids] == [0, 0]
    assert [hints(await schedule(desk, [id])) for id in await desk.request(2)] == [1, 0]


@pytest.mark.parametrize("way", ["attempt", "outside"])
async def test_probe_with_a_retry_is_announced(desk: Desk, way: str) -> None:
    await desk.open(
        Limit(ref="shop.bank", scope="shop", breaker={"failures": 1, "of": 4, "within": "1h", "probe": "1s"})
    )
    ids = await desk.start(1)
    await desk.claim(ids)
    if way == "attempt":
        [row] = await desk.session.fetch(FAIL_AND_RETRY, desk.worker, ids)
    else:
        await desk.finish(ids, "waiting", asked='{"outside": {"timeout": 3600}}')
        [row] = await desk.session.fetch(
            "select messages from settle_outside($1, 1, null, '{}', 'it is down', 0, 'ada')", ids[0]
        )
    assert hints([row]) == 1


@pytest.mark.parametrize("is_claimed", [True, False])
async def test_execution_that_gives_way_is_announced(desk: Desk, is_claimed: bool) -> None:
    await desk.open(Limit(1, ref="shop.one", scope="shop", when_full="cancel_running"))
    ids = await desk.request(2)
    assert hints(await schedule(desk, ids[:1])) == 0
    if is_claimed:
        await desk.claim(ids[:1])
        await desk.finish(ids[:1], "waiting")
    assert hints(await schedule(desk, ids[1:])) > 0
