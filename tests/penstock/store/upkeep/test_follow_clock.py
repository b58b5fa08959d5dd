"""The clock of the database goes back: what other processes wrote before is to come, and is moved by the difference."""

from __future__ import annotations

import re

import pytest

from penstock.store.schema.functions import declared
from penstock.store.upkeep import figures
from tests.penstock.store.stand import AGO, Stand

FOLLOW = "select follow_clock() as went_back"
HELD = """
insert into hold (kind, name, by, rate_count, rate_seconds, releasing_since)
values ('action', 'a.b', 'ada', 1, 60, clock_timestamp() + interval '59 minutes')
"""


MOVED = """
breaker opened_at probe_at releasing_since; breaker_attempt ended_at; catalog watches_since; claim claimed_at;
cluster resumed_at seen_at; delivery due_at; figures due_at; finished at; hold releasing_since; live restaged_at;
login_failure at; namespace away_since; ordered_route since; outbox due_at; permit at; person_session seen_at; poll next_due;
process beat_at unlocked_at; subscription failing_since; unmatched since; untold since; wake at
"""
"""Instants that `follow_clock`, or the watch over silent processes, moves after a step back."""

KEPT = {
    "instants of executions, and what ends at an instant of the clock": """
        api_token expires_at old_until; execution not_before; hold until; inquiry due_at; outside_wait deadline_at due_at;
        person_session expires_at; schedule last_due next_due since; start_burst closes_at; suspended until; timer due_at;
        waiting_fire due_at not_before""",
    "places in line, which follow the instants of executions": """
        backlog ready_at root_at; execution ready_at since; held_execution ready_at; history ready_at; lane moved_at ready_at;
        parked ready_at; waiter ready_at since""",
    "instants of events and of fires, which have an order of their own": """
        burst closed_at first_at last_at; burst_event at; burst_key due_at; fire due_at; open_fire due_at;
        start_burst first_at""",
    "compared where an instant that is to come is known for what it is": """
        admission admitted_at; dead_letter last_at; event_wait since; figures measured_at; slot admitted_at; suspended since""",
    "only age by which old rows are deleted": """
        chain_step created_at; early_outcome created_at; effect created_at; enforcement created_at; event_key created_at;
        event_trace created_at; chain created_at; idempotency created_at; joined_start at; known_address seen_at; untraced at;
        budget created_at; webhook_refusal hour""",
    "records, which are shown": """
        admission ready_at since; api_token created_at rotated_at used_at; archive created_at finished_at; archived_label
        finished_at; attempt at; audit at; awaited at; budget spent_at; budget_entry at; catalog updated_at; chain cut_at;
        dead_letter first_at; definition created_at; delivery made_at; event created_at; execution created_at finished_at;
        fire ended_at made_at; history at; hold since; inquiry answered_at created_at; lane began_at; log_line at; open_fire
        made_at; outbox created_at; outside_wait progress_at settled_at since; parked at; penstock_function applied_at; person
        created_at totp_since; person_session created_at; poll called_at; process locked_at started_at; saved_view changed_at
        created_at; schedule updated_at; secret set_at; step at; stuck at; subscribed_move at; subscription created_at
        delivered_at disabled_at; tenant_key made_at; webhook created_at; webhook_refusal last_at; workflow_command created_at
        obeyed_at""",
}
"""The other instants of the schema, by the reason for which a step back leaves them alone."""


def named(text: str) -> list[tuple[str, str]]:
    """Return the pairs of a table and a column in a list such as `poll next_due; wake at`."""
    return [
        (table, column)
        for table, *columns in (entry.split() for entry in text.split(";") if entry.strip())
        for column in columns
    ]


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


async def test_each_instant_of_the_schema_is_moved_or_left_for_a_reason(stand: Stand) -> None:
    rows = await stand.sql(
        "select c.relname as table, a.attname as column from pg_attribute a join pg_class c on c.oid = a.attrelid"
        " where c.relnamespace = current_schema()::regnamespace and a.atttypid = 'timestamptz'::regtype and a.attnum > 0"
        " and not a.attisdropped and c.relkind in ('r', 'p') and not c.relispartition"
    )
    listed = [pair for text in (MOVED, *KEPT.values()) for pair in named(text)]
    assert sorted(listed) == sorted((row["table"], row["column"]) for row in rows)


def test_instants_that_are_moved_are_set_by_the_functions_that_follow_the_clock() -> None:
    functions = declared()
    text = " ".join(
        functions[name].text for name in ("follow_clock", "follow_clock_elsewhere", "note_silence")
    )
    written = {
        (table, column)
        for table, values in re.findall(
            r"\b(?:update|insert into) (\w+)(?: set)?([^;]*?)(?:\bwhere\b|;)", text
        )
        for column in re.findall(r"\b(\w+)(?: = |, |\))", values)
    }
    assert set(named(MOVED)) <= written


async def test_archive_and_figures_do_not_wait_for_the_clock(stand: Stand) -> None:
    for minute in (-3, 58, 62):
        await stand.sql(
            "insert into finished (at, ids) values (clock_timestamp() + make_interval(mins => $1), '{}')",
            minute,
        )
    await stand.sql("update figures set due_at = clock_timestamp() + interval '1 hour' returning 1")
    await ahead(stand, 3600)
    assert await follow(stand)
    assert await minutes(stand, "at", "finished") == [-3, -2, 0]
    assert await minutes(stand, "due_at", "figures") == [0]


async def test_instants_of_workers_and_of_the_api_move_with_the_clock(stand: Stand) -> None:
    at = "clock_timestamp() + make_interval(mins => $1)"
    await stand.sql(
        "insert into person (id, name, password, created_by) values (gen_random_uuid(), 'ada', '', 'ada')"
    )
    for minute in (-3, 58, 62):
        await stand.sql(
            "insert into permit (worker, queue, channel, actor, definitions, at)"
            f" values (gen_random_uuid(), 'work.default', '', '', '{{}}', {at})",
            minute,
        )
        await stand.sql(
            f"insert into login_failure (id, name, address, at) values (gen_random_uuid(), 'ada', '', {at})",
            minute,
        )
        await stand.sql(
            "insert into person_session (id, person, digest, address, browser, expires_at, seen_at)"
            f" select gen_random_uuid(), id, $2, '', '', clock_timestamp() + interval '1 day', {at} from person",
            *(minute, str(minute).encode()),
        )
        await stand.sql(
            "insert into catalog (kind, ref, definition_id, watches_since)"
            f" values ('rule', 'a.rule' || $2::text, $3, {at})",
            *(minute, str(minute), stand.definition),
        )
    await ahead(stand, 3600)
    assert await follow(stand)
    for column, table in (
        ("at", "permit"),
        ("at", "login_failure"),
        ("seen_at", "person_session"),
        ("watches_since", "catalog where kind = 'rule'"),
    ):
        assert await minutes(stand, column, table) == [-3, -2, 0], table


async def test_ends_of_repeated_time_are_not_counted_twice(stand: Stand) -> None:
    await stand.sql("update figures set measured_at = clock_timestamp() + interval '1 hour' returning 1")
    async with stand.session.transaction() as tx:
        due = await figures.due(tx)
        assert due is not None
        await figures.keep(tx, due.before, due.until, 15)
    assert await minutes(stand, "measured_at", "figures") == [60]


async def test_execution_without_a_worker_is_stuck_although_its_instant_is_to_come(stand: Stand) -> None:
    await stand.sql(
        "insert into catalog (kind, ref, definition_id, trigger) values ('rule', 'a.alert', $1, 'penstock.execution.stuck')",
        stand.definition,
    )
    id = await stand.add("from before", "scheduled", ready=-AGO, since=-AGO)
    await stand.add("new", "scheduled", ready=AGO * 0, since=AGO * 0)
    await stand.sql("select from raise_stuck(600, 60, '00000000-0000-0000-0000-000000000000', 10)")
    assert [row["execution_id"] for row in await stand.sql("select execution_id from stuck")] == [id]
