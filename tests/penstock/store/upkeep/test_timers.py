"""The executions that their timers end, case by case. Each is there once as it should end, and once for every reason not to,
and once while another session has it in hand."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from tests.penstock.store.stand import HELD, Stand

HOUR, NOW = timedelta(hours=1), timedelta(0)
MINUTE = {"timeouts": {"schedule_to_start": 60, "queued": 60}}
NEVER = {"timeouts": {"schedule_to_start": None, "queued": None}}
FIRST = UUID(int=0)


def all_but(stand: Stand, name: str) -> list[UUID]:
    return [id for other, id in stand.ids.items() if other != name]


async def test_only_a_named_execution_that_never_began_expires(stand: Stand) -> None:
    for status in ("requested", "queued", "scheduled"):
        await stand.add(status, status)
    expires = set(stand.ids)
    for status in ("requested", "queued", "scheduled", "waiting"):
        await stand.add(f"{status} again", status, attempt=1)
    await stand.add("under way", "running", attempt=1)
    await stand.add("over", "completed", live=False)
    await stand.add("not named", "requested")
    await stand.sql("select end_unstarted($1::uuid[])", all_but(stand, "not named"))
    assert await stand.with_status("timeout") == expires
    assert await stand.with_status("completed") == {"over"}


@pytest.mark.parametrize(
    ("kind", "ends", "reason"),
    [
        ("start", {"requested", "scheduled"}, "no worker started it in time"),
        ("queued", {"queued"}, "its limits did not let it in in time"),
    ],
)
async def test_only_a_named_execution_that_waits_too_long_ends(
    stand: Stand, kind: str, ends: set[str], reason: str
) -> None:
    for status in ("requested", "scheduled", "queued", "running", "waiting"):
        await stand.add(status, status, options=MINUTE)
        await stand.add(f"{status} for a moment", status, ready=NOW, options=MINUTE)
        await stand.add(f"{status} again", status, since=NOW, options=MINUTE)
        await stand.add(f"{status} for ever", status, options=NEVER)
        await stand.add(f"{status} with nothing said", status)
        await stand.add(f"{status} and held", status, not_before=HELD, options=MINUTE)
    name = next(iter(ends))
    await stand.add("not named", name, options=MINUTE)
    await stand.sql("select end_waits($1::uuid[], $2)", all_but(stand, "not named"), kind)
    assert await stand.with_status("timeout") == ends
    assert {
        row["reason"] for row in await stand.sql("select reason from execution where status = 'timeout'")
    } == {reason}


async def test_an_unclaimed_execution_ends_unless_it_sets_another_time(stand: Stand) -> None:
    await stand.add("forgotten", "scheduled")
    await stand.add("let in long ago", "scheduled", ready=timedelta(hours=2), since=HOUR)
    await stand.add("patient", "scheduled", options=NEVER)
    await stand.add("more patient", "scheduled", options={"timeouts": {"schedule_to_start": 7200}})
    await stand.add("young", "scheduled", ready=NOW)
    await stand.add("let in just now", "scheduled", since=NOW)
    await stand.add("not yet scheduled", "requested")
    await stand.add("under way", "running")
    await stand.add("not open", "scheduled", live=False)
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select next from end_unclaimed(600, $1, 100)", FIRST)
        free = await stand.sql("select id from execution for no key update skip locked")
    ends = {"forgotten", "let in long ago"}
    assert await stand.with_status("timeout") == ends
    assert stand.names([row["id"] for row in free]) == set(stand.ids) - ends, "nobody else is held up"


async def test_unclaimed_executions_are_gone_through_in_steps(stand: Stand) -> None:
    for name in "abcd":
        await stand.add(name, "scheduled")
    [row] = await stand.sql("select next from end_unclaimed(600, $1, 2)", FIRST)
    assert (row["next"], await stand.with_status("timeout")) == (stand.ids["b"], {"a", "b"})
    [row] = await stand.sql("select next, messages from end_unclaimed(600, $1, 2)", stand.ids["d"])
    assert (row["next"], row["messages"]) == (None, [])
    assert await stand.with_status("timeout") == {"a", "b"}


async def test_an_execution_that_a_worker_is_claiming_is_left_to_it(stand: Stand) -> None:
    for name in "ab":
        await stand.add(name, "scheduled")
    async with stand.home.session().transaction() as tx:
        await tx.fetch("update execution set status = 'running', attempt = 1 where id = $1", stand.ids["a"])
        await stand.sql("set lock_timeout = '5s'")
        await stand.sql("select next from end_unclaimed(600, $1, 100)", FIRST)
    assert await stand.with_status("timeout") == {"b"}


async def blocked(stand: Stand) -> None:
    """Wait until a connection waits for a lock."""
    watcher = stand.home.session()
    async with asyncio.timeout(10):
        while not await watcher.fetch(
            "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        ):
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("call", "change"),
    [
        ("end_unstarted($1::uuid[])", "attempt = 1"),
        ("end_waits($1::uuid[], 'start')", "since = clock_timestamp()"),
    ],
)
async def test_a_change_is_seen_after_the_wait_for_its_row(stand: Stand, call: str, change: str) -> None:
    await stand.add("a", "requested", options=MINUTE)
    async with stand.home.session().transaction() as tx:
        await tx.fetch(f"update execution set {change} where id = $1", stand.ids["a"])
        ending = asyncio.create_task(stand.sql(f"select {call}", [stand.ids["a"]]))
        await blocked(stand)
    await ending
    assert await stand.with_status("requested") == {"a"}


@pytest.mark.parametrize("call", ["end_unstarted($1::uuid[])", "end_waits($1::uuid[], 'start')"])
async def test_rows_locked_by_another_and_ended_ones_are_not_waited_for(stand: Stand, call: str) -> None:
    for name in "ab":
        await stand.add(name, "requested", options=MINUTE)
    await stand.add("over", "completed", options=MINUTE, live=False)
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select from execution where id <> $1 for update", stand.ids["a"])
        await stand.sql("set lock_timeout = '5s'")
        await stand.sql(f"select {call}", [stand.ids["a"], stand.ids["over"]])
    assert await stand.with_status("timeout") == {"a"}


async def timers(stand: Stand) -> set[tuple[str, str]]:
    names = {id: name for name, id in stand.ids.items()}
    return {
        (names[row["execution_id"]], row["kind"])
        for row in await stand.sql("select execution_id, kind from timer")
    }


async def test_close_executions_deletes_only_their_unlocked_timers(
    stand: Stand,
) -> None:
    for name in "abc":
        await stand.add(name, "running")
        for kind in ("total", "ready"):
            await stand.timer(name, kind)
    async with stand.home.session().transaction() as tx:
        await tx.fetch(
            "select from timer where execution_id = $1 and kind = 'total' for update", stand.ids["b"]
        )
        await stand.sql("set lock_timeout = '5s'")
        await stand.sql(
            "select close_executions(array("
            "select (id, null, 'completed', true, false, null, null)::ended from unnest($1::uuid[]) id))",
            [stand.ids["a"], stand.ids["b"]],
        )
    assert await timers(stand) == {("b", "total"), ("c", "total"), ("c", "ready")}


async def fired(stand: Stand, limit: int = 100) -> int:
    [row] = await stand.sql("select fired from fire_timers($1)", limit)
    return int(row["fired"])


async def test_timers_are_taken_one_kind_at_a_time_the_oldest_first_and_so_many(stand: Stand) -> None:
    for n, name in enumerate("abcd"):
        await stand.add(name, "requested")
        await stand.timer(name, "ready", timedelta(minutes=n + 1))
    await stand.add("z", "requested")
    await stand.timer("z", "total", timedelta(seconds=1))
    await stand.timer("a", "total", timedelta(seconds=-600))
    assert await fired(stand, 3) == 3
    assert await timers(stand) == {("a", "ready"), ("z", "total"), ("a", "total")}, (
        "the oldest were due first"
    )
    assert await fired(stand) == 1
    assert await timers(stand) == {("z", "total"), ("a", "total")}
    assert await fired(stand) == 1
    assert await timers(stand) == {("a", "total")}, "what is due later stays"
    assert await fired(stand) == 0
    assert await stand.with_status("timeout") == {"z"}


async def test_of_several_timers_of_a_kind_only_the_one_that_is_due_is_taken(stand: Stand) -> None:
    await stand.add("a", "requested")
    for ago in (HOUR, -HOUR):
        await stand.timer("a", "ready", ago)
    assert await fired(stand) == 1
    assert await timers(stand) == {("a", "ready")}


async def test_of_those_that_are_due_at_one_instant_no_more_are_taken_than_asked_for(stand: Stand) -> None:
    for name in "ab":
        await stand.add(name, "requested")
    await stand.sql(
        "insert into timer select now() - interval '1 hour', kind, id from execution, (values ('ready'), ('total')) k (kind)"
    )
    assert await fired(stand, 1) == 1
    assert len(await timers(stand)) == 3


async def test_a_timer_of_an_unknown_kind_keeps_no_other_back(stand: Stand) -> None:
    await stand.add("a", "requested")
    await stand.timer("a", "unheard of", HOUR)
    await stand.timer("a", "ready", timedelta(minutes=1))
    [row] = await stand.sql("select messages, canceling, fired from fire_timers(10)")
    assert (row["canceling"], row["fired"]) == ([], 1)
    [row] = await stand.sql("select messages, canceling, fired from fire_timers(10)")
    assert (row["messages"], row["canceling"], row["fired"]) == ([], [], 0)
    assert await timers(stand) == {("a", "unheard of")}


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("ready", "scheduled"),
        ("total", "timeout"),
        ("start", "timeout"),
        ("expires", "timeout"),
        ("yield", "cancelled"),
    ],
)
async def test_each_kind_of_timer_has_its_effect(stand: Stand, kind: str, status: str) -> None:
    await stand.add("a", "requested", options=MINUTE)
    await stand.add("b", "requested", options=MINUTE)
    await stand.timer("a", kind)
    [row] = await stand.sql("select messages, fired from fire_timers(10)")
    assert row["fired"] == 1
    assert "a" in await stand.with_status(status)
    assert "b" in await stand.with_status("requested")
    staged = [message["queue"] for message in row["messages"]]
    assert ("work.default" in staged) is (kind == "ready")


async def test_a_sleeper_is_woken(stand: Stand) -> None:
    await stand.add("a", "waiting", attempt=1)
    await stand.sql("insert into suspended (execution_id, until) select id, now() from execution")
    await stand.timer("a", "wake")
    [row] = await stand.sql("select messages, fired from fire_timers(10)")
    assert (row["fired"], [message["queue"] for message in row["messages"]]) == (1, ["work.default"])
    assert await stand.with_status("scheduled") == {"a"}


async def test_a_limit_that_admits_none_ends_the_wait_too(stand: Stand) -> None:
    await stand.add("a", "queued", options=MINUTE)
    await stand.timer("a", "queued")
    assert await fired(stand) == 1
    assert await stand.with_status("timeout") == {"a"}


async def test_clocks_are_set_for_timed_waiting_executions(stand: Stand) -> None:
    for status in ("requested", "scheduled", "queued", "running", "waiting"):
        await stand.add(status, status, timed=True, options=MINUTE)
    await stand.add("not timed", "requested", options=MINUTE)
    await stand.add("held", "requested", timed=True, not_before=HELD, options=MINUTE)
    await stand.add("for ever", "requested", timed=True, options=NEVER)
    await stand.add("not named", "requested", timed=True, options=MINUTE)
    await stand.add("since", "queued", timed=True, since=timedelta(minutes=30), options=MINUTE)
    for _ in range(2):
        await stand.sql("select set_clocks($1::uuid[])", all_but(stand, "not named"))
    assert await timers(stand) == {
        ("requested", "start"),
        ("scheduled", "start"),
        ("queued", "queued"),
        ("since", "queued"),
    }
    late = await stand.sql(
        "select e.id from timer t join execution e on e.id = t.execution_id"
        " where t.due_at = coalesce(e.since, e.ready_at) + interval '60 s'"
    )
    assert len(late) == 4
