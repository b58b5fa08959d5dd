"""The clock of the database goes back: what other processes wrote before is to come, and is moved by the difference."""

from __future__ import annotations

import pytest

from tests.penstock.store.stand import Stand

FOLLOW = "select follow_clock() as went_back"
HELD = """
insert into hold (kind, name, by, rate_count, rate_seconds, releasing_since)
values ('action', 'a.b', 'ada', 1, 60, clock_timestamp() + interval '59 minutes')
"""


async def ahead(stand: Stand, seconds: int) -> None:
    """An executor has noted an instant that is so many seconds ahead of the clock."""
    await stand.sql(
        "update cluster set seen_at = clock_timestamp() + make_interval(secs => $1) returning 1", seconds
    )


async def follow(stand: Stand) -> bool:
    [row] = await stand.sql(FOLLOW)
    return bool(row["went_back"])


async def minutes(stand: Stand, column: str, table: str) -> list[int | None]:
    """Return how many minutes the instants of a column are ahead of the clock."""
    rows = await stand.sql(
        f"select round(extract(epoch from {column} - clock_timestamp()) / 60)::integer as ahead from {table} order by 1"
    )
    return [row["ahead"] for row in rows]


@pytest.mark.parametrize(
    ("seconds", "went_back"), [(-3600, False), (-5, False), (0, False), (2, True), (3600, True)]
)
async def test_clock_that_went_back_is_noticed_once(stand: Stand, seconds: int, went_back: bool) -> None:
    assert not await follow(stand), "no executor has noted an instant"
    await ahead(stand, seconds)
    assert [await follow(stand), await follow(stand)] == [went_back, False]
    assert await minutes(stand, "seen_at", "cluster") == [0]


async def test_noted_instant_is_written_every_ten_seconds(stand: Stand) -> None:
    version = "select xmin::text as version from cluster"
    await follow(stand)
    [before] = await stand.sql(version)
    await follow(stand)
    assert await stand.sql(version) == [before]
    await ahead(stand, -11)
    await follow(stand)
    assert await minutes(stand, "seen_at", "cluster") == [0]


async def test_waking_of_keys_and_namespaces_moves_with_the_clock(stand: Stand) -> None:
    space = await stand.namespace("action", "work.default")
    await stand.sql(
        "insert into wake (limit_id, group_value, at) select 1, g.value, clock_timestamp() + make_interval(mins => g.at)"
        " from (values ('past', -5), ('soon', 30), ('later', 90)) g (value, at)"
    )
    await stand.sql(
        "insert into wake (namespace_id, at) values ($1, clock_timestamp() + interval '62 minutes')", space
    )
    await ahead(stand, 3600)
    assert await follow(stand)
    assert await minutes(stand, "at", "wake where limit_id = 1") == [-5, 0, 30]
    assert await minutes(stand, "at", "wake where limit_id is null") == [2]


async def test_breakers_and_their_attempts_move_with_the_clock(stand: Stand) -> None:
    soon = "clock_timestamp() + make_interval(mins => $1)"
    opened = (
        f"insert into breaker (limit_id, group_value, opened_at, probe_at) values (1, $2, {soon}, {soon})"
    )
    await stand.sql(opened, -9, "before")
    await stand.sql(opened, 61, "ahead")
    await stand.sql(
        "insert into breaker (limit_id, group_value, opened_at, probe_at, releasing_since)"
        f" values (1, 'in release', {soon}, null, {soon})",
        65,
    )
    for at in (-7, 58):
        await stand.sql(
            "insert into breaker_attempt (limit_id, group_value, ended_at, execution_id, attempt, failed)"
            f" values (1, '', {soon}, gen_random_uuid(), 1, true)",
            at,
        )
    await ahead(stand, 3600)
    assert await follow(stand)
    assert await minutes(stand, "opened_at", "breaker") == [-9, 1, 5]
    assert await minutes(stand, "probe_at", "breaker") == [-9, 1, None]
    assert await minutes(stand, "releasing_since", "breaker") == [5, None, None]
    assert await minutes(stand, "ended_at", "breaker_attempt") == [-7, -2]


async def test_releases_polls_and_messages_move_with_the_clock(stand: Stand) -> None:
    await stand.sql(HELD)
    for trigger, every, due in (("a.slow", 7200, 90), ("a.ahead", 300, 62), ("a.due", 300, -1)):
        await stand.sql(
            "insert into poll (trigger, definition_id, namespace_id, every, next_due)"
            " values ($1, $2, 1, $3, clock_timestamp() + make_interval(mins => $4))",
            *(trigger, stand.definition, every, due),
        )
    for due in (-3, 20, 63):
        await stand.sql(
            "insert into outbox (queue, ids, due_at)"
            " values ('event.created', '{}', clock_timestamp() + make_interval(mins => $1))",
            due,
        )
    await ahead(stand, 3600)
    assert await follow(stand)
    assert await minutes(stand, "releasing_since", "hold") == [-1]
    assert await minutes(stand, "next_due", "poll") == [-1, 2, 90]
    assert await minutes(stand, "due_at", "outbox") == [-3, 0, 3]


async def test_records_of_lost_messages_move_with_the_clock(stand: Stand) -> None:
    """Each table has a row from before, one from the step, and one that was written after the latest instant that was noted."""
    at = "clock_timestamp() + make_interval(mins => $1)"
    for minute in (-3, 58, 62):
        await stand.sql(f"insert into untold values (gen_random_uuid(), {at})", minute)
        await stand.sql(f"insert into unmatched values (gen_random_uuid(), {at})", minute)
        await stand.sql(f"insert into live values (gen_random_uuid(), {at})", minute)
        await stand.sql(
            f"insert into claim values (gen_random_uuid(), gen_random_uuid(), '{{}}', {at})", minute
        )
        await stand.sql(f"insert into ordered_route values ($2, {at})", minute, f"work.{minute}")
        await stand.sql(
            f"insert into namespace (name, action, kind, queue, away_since) values ($2, 'a.b', 'action', 'work.x', {at})",
            *(minute, f"public::a::{minute}"),
        )
        await stand.sql(
            "insert into subscription (name, url, statuses, created_by, failing_since)"
            f" values ($2, 'http://a.example', '{{}}', 'ada', {at})",
            *(minute, f"s{minute}"),
        )
        await stand.sql(
            f"insert into delivery (id, subscription, body, due_at) values (gen_random_uuid(), $2, '', {at})",
            *(minute, f"s{minute}"),
        )
    await ahead(stand, 3600)
    assert await follow(stand)
    for column, table in (
        ("since", "untold"),
        ("since", "unmatched"),
        ("restaged_at", "live"),
        ("claimed_at", "claim"),
        ("since", "ordered_route"),
        ("away_since", "namespace where away_since is not null"),
        ("failing_since", "subscription"),
    ):
        assert await minutes(stand, column, table) == [-3, -2, 0], table
    assert await minutes(stand, "due_at", "delivery") == [-3, 0, 2]


async def test_row_in_another_transaction_is_not_waited_for(stand: Stand) -> None:
    """The other transaction holds the row, and then needs what the comparison has locked."""
    await stand.sql("insert into live values (gen_random_uuid(), clock_timestamp() + interval '1 hour')")
    await ahead(stand, 3600)
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select from live for update")
        assert await follow(stand)


async def test_replica_that_compares_at_this_moment_is_not_waited_for(stand: Stand) -> None:
    await follow(stand)
    await ahead(stand, 3600)
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select from cluster for no key update")
        assert not await follow(stand)
    assert await follow(stand)
