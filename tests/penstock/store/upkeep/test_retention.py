"""The retention keeps rows past their time as long as stored work needs them, in daily partitions and elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from penstock import Rule, Trigger, action
from penstock.language.terms.ids import new_id
from penstock.operate.check import check
from penstock.operate.doctor import installation as doctor
from penstock.service.assembly import Parts
from penstock.store.events import bursts
from penstock.store.upkeep import retention
from penstock_executor import installation_metrics
from penstock_executor.loops import close_bursts, drop_expired
from tests.flows.installation import Installation

DAY = "20200101"
OLD = "timestamptz '2020-01-01 12:00+00'"

NEEDED_ROWS = {
    "event": f"insert into event (id, trigger, tenant, payload, created_at) values ($1, 't.e', 'public', '{{}}', {OLD})",
    "archive": "insert into archive (id, finished_at, status, action, namespace, root, created_at, attempt, failures, "
    f"recoveries, priority, definition_id) values ($1, {OLD}, 'completed', 'a.b', 'public::a::b', $1, {OLD}, 1, 0, 0, 0, 1)",
    "fire": "insert into fire (schedule, due_at, status, kind, definition_id, execution_id, made_at) "
    f"values ('s.s', {OLD}, 'created', 'due', 1, $1, {OLD})",
}
"""A statement for each table with partitions to which other tables refer: it inserts an old row with this id."""
OPEN_FIRE = (
    f"insert into open_fire (execution_id, schedule, due_at, made_at) values ($1, 's.s', {OLD}, {OLD})"
)
EXECUTION = "insert into execution (id, status, namespace_id, definition_id) values ($1, 'running', 1, 1) on conflict do nothing"
REFERENCES = {
    ("event", "unmatched"): "insert into unmatched (event_id) values ($1)",
    ("event", "burst_event"): "insert into burst_event (event_id, rule, tenant, key, at, definition_id) "
    f"values ($1, 'r.r', 'public', 'k', {OLD}, 1)",
    ("archive", "open_fire"): OPEN_FIRE,
    (
        "archive",
        "poll",
    ): "insert into poll (trigger, definition_id, namespace_id, every, running) values ('p.p', 1, 1, 60, $1)",
    (
        "archive",
        "enforcement",
    ): "insert into enforcement (event_id, rule, definition_id, execution_id, status, created_at) "
    "values (gen_random_uuid(), 'r.r', 1, $1, 'executed', '2019-12-31 00:00+00')",
    ("archive", "payload"): "insert into payload (execution_id, params, origin) "
    "values ('00000000-0000-0000-0000-000000000001', '{}', jsonb_build_object('rerun_of', $1::uuid))",
    ("fire", "open_fire"): OPEN_FIRE,
    (
        "fire",
        "waiting_fire",
    ): "insert into waiting_fire (schedule, due_at, execution_id, replaces, namespace_id, definition_id, "
    f"params) values ('s.s', {OLD}, $1, false, 1, 1, '{{}}')",
}
"""A statement for each reference of stored work to such a row."""
PLACES = sorted(REFERENCES)

REFERRING = {
    "unmatched": "event",
    "burst_event": "event",
    "event_key": "the key alone is read",
    "event_trace": "a trace is kept with the event (retention.NEEDED)",
    "enforcement": "its execution has all it needs; a failed one is evaluated again as long as the event is kept",
    "burst": "it is closed",
    "open_fire": "archive and fire",
    "waiting_fire": "fire",
}
"""What each table with a column that names an event or a fire needs of the partitions. Another table is another decision."""


@pytest.fixture
async def house(database: str) -> AsyncIterator[Installation]:
    async with Installation(database, None) as house:
        yield house


async def turn(parts: Parts) -> None:
    while await drop_expired.turn(parts, parts.database.session()) is True:
        pass


async def old_day(house: Installation, *tables: str) -> None:
    for table in tables:
        await house.rows(
            f"create table {table}_{DAY} partition of {table} for values "
            "from ('2020-01-01 00:00+00') to ('2020-01-02 00:00+00')"
        )


async def refer(house: Installation, place: tuple[str, str]) -> UUID:
    """Insert an old row, and a reference of stored work to it."""
    id = new_id()
    await house.rows(NEEDED_ROWS[place[0]] + " returning 1", id)
    if place[1] == "payload":
        await house.rows(EXECUTION + " returning 1", UUID(int=1))
    await house.rows(REFERENCES[place] + " returning 1", id)
    return id


async def count(house: Installation, table: str) -> int:
    [row] = await house.rows(f"select count(*) as count from {table}")
    return int(row["count"])


@pytest.mark.parametrize("place", PLACES, ids=" of ".join)
@pytest.mark.parametrize("partition", [DAY, "default"])
async def test_old_row_stays_while_work_needs_it(
    house: Installation, place: tuple[str, str], partition: str
) -> None:
    table, needed_by = place
    if partition == DAY:
        await old_day(house, table)
    await refer(house, place)
    parts = await house.parts()
    if needed_by == "enforcement":  # as if a batch of them were still to be deleted
        await house.rows("update enforcement set created_at = '2019-12-31' returning 1")
        assert await needs(house, table) == ({"enforcement": 1} if partition == DAY else {})
        await turn(parts)
        assert await count(house, table) == 0
        return
    await turn(parts)
    assert await count(house, table) == 1
    if partition == DAY:
        assert await needs(house, table) == {needed_by: 1}
        assert installation_metrics.shown(parts).held_rows == {place: 1}
        [finding] = [
            finding
            for finding in await doctor.findings(house.session, house.settings())
            if finding.what == "retention"
        ]
        assert (finding.state, f"{table}_{DAY} (1 rows for {needed_by})" in finding.says) == ("warning", True)
    await house.rows(f"delete from {needed_by} returning 1")
    await turn(parts)
    assert await count(house, table) == 0
    assert installation_metrics.shown(parts).held_rows == {}


async def needs(house: Installation, table: str) -> dict[str, int]:
    return {row[0]: row[1] for row in await house.rows("select * from partition_needs($1)", f"{table}_{DAY}")}


async def test_day_that_work_needs_is_not_dropped_by_hand(house: Installation) -> None:
    await old_day(house, "event")
    await refer(house, ("event", "unmatched"))
    await house.rows("select drop_partition($1)", f"event_{DAY}")
    assert await count(house, f"event_{DAY}") == 1


async def test_labels_stay_as_long_as_their_archived_execution(house: Installation) -> None:
    await old_day(house, "archive", "archived_label")
    id = await refer(house, ("archive", "open_fire"))
    await house.rows(
        "insert into archived_label (id, key, value, tenant, child, status, finished_at) "
        f"values ($1, 'k', 'v', 'public', false, 'completed', {OLD}) returning 1",
        id,
    )
    parts = await house.parts()
    await turn(parts)
    assert await count(house, "archived_label") == 1
    await house.rows("delete from open_fire returning 1")
    await turn(parts)
    assert await count(house, "archived_label") == 0


async def test_every_reference_to_an_event_or_a_fire_is_decided(house: Installation) -> None:
    rows = await house.rows(
        "select distinct c.relname::text as name from pg_class c join pg_attribute a on a.attrelid = c.oid "
        "where c.relkind in ('r', 'p') and not c.relispartition and pg_table_is_visible(c.oid) and c.relname <> 'fire' "
        "and c.relnamespace = quote_ident(current_schema())::regnamespace "
        "and (a.attname = 'event_id' or a.attname = 'due_at' and exists (select from pg_attribute s "
        "where s.attrelid = c.oid and s.attname = 'schedule'))"
    )
    assert {row["name"] for row in rows} == set(REFERRING)


NEEDING = {
    "event_key": (
        "insert into event_key (tenant, trigger, source, message_id, event_id, digest, created_at) "
        f"values ('public', 't.e', '', 'm', $1, 'd', {OLD})",
        "insert into unmatched (event_id) values ($1)",
    ),
    "event_trace": (
        f"insert into event_trace (event_id, trace, created_at) values ($1, '{{}}', {OLD})",
        "insert into unmatched (event_id) values ($1)",
    ),
    "idempotency": (
        "insert into idempotency (tenant, key, execution_id, digest, created_at) "
        f"values ('public', 'k', $1, 'd', {OLD})",
        EXECUTION,
    ),
    "chain": (
        f"insert into chain (id, max_descendants, depth, created_at) values ($1, 3, 0, {OLD})",
        "with step as (insert into chain_step (id, depth, chains) "
        "values ('00000000-0000-0000-0000-000000000001', 1, array[$1::uuid])) "
        "insert into execution (id, status, namespace_id, definition_id) "
        "values ('00000000-0000-0000-0000-000000000001', 'running', 1, 1)",
    ),
    "chain_step": (
        f"insert into chain_step (id, depth, chains, created_at) values ($1, 0, array[$1::uuid], {OLD})",
        EXECUTION,
    ),
    "effect": (
        f"insert into effect (parent, id, kind, created_at) values ($1, gen_random_uuid(), 'event', {OLD})",
        EXECUTION,
    ),
    "workflow_command": (
        f"insert into workflow_command (execution_id, kind, by, created_at) values ($1, 'pause', 'u', {OLD})",
        EXECUTION,
    ),
}
"""An old row of each table with keys, and the row for which it is still needed."""


@pytest.mark.parametrize("table", NEEDING)
async def test_old_key_stays_while_work_needs_it(house: Installation, table: str) -> None:
    id, (row, need) = new_id(), NEEDING[table]
    await house.rows(row + " returning 1", id)
    await house.rows(need + " returning 1", id)
    parts = await house.parts()
    await turn(parts)
    assert await count(house, table) == 1
    await house.rows("delete from execution returning 1")
    await house.rows("delete from unmatched returning 1")
    await turn(parts)
    assert await count(house, table) == 0


def test_every_condition_is_tested() -> None:
    assert set(NEEDING) | {"burst_event"} == set(retention.NEEDED)


placed = Trigger("late.placed", schema={"n": "integer"})
sent = Trigger("late.sent", schema={"n": "integer"})


@action(pack="late")
async def note(n: int) -> int:
    return n


@action(pack="late")
async def add(numbers: list[int]) -> int:
    return sum(numbers)


ON_PLACED = Rule("late.on_placed", trigger=placed, action=note, params={"n": "{{ payload.n }}"})


def on_sent(debounce: str) -> Rule:
    return Rule(
        "late.on_sent",
        trigger=sent,
        action=add,
        params={"numbers": "{{ payloads | map(attribute='n') | list }}"},
        debounce=debounce,
        keep="all",
    )


ON_SENT, ON_SENT_LATER = on_sent("1s"), on_sent("10s")
AGE = f"update event set created_at = {OLD} returning 1"


async def test_events_without_an_executor_for_years_still_start_their_rules(house: Installation) -> None:
    await house.apply(placed, note, ON_PLACED)
    await old_day(house, "event")
    for n in range(30):
        await house.client.publish("late.placed", {"n": n})
    await house.rows(AGE)
    parts = await house.parts()
    parts.settings = house.settings(event_retention_days=1)
    await turn(parts)
    await house.executor(event_retention_days=1)
    await house.worker(note)
    await house.until("select 1 where not exists (select from unmatched)")
    await house.quiet()
    assert await house.statuses() == {"completed": 30}
    assert await count(house, "dead_letter") == 0
    await turn(parts)
    assert await count(house, "event") == 0
    await house.sound()


async def test_event_that_is_gone_leaves_a_dead_letter(house: Installation) -> None:
    await house.apply(placed, note, ON_PLACED)
    ids = [await house.client.publish("late.placed", {"n": n}) for n in range(3)]
    await house.rows("delete from event where id = $1 returning 1", ids[1])
    broken = {
        finding.name: finding.violations for finding in await check(house.session) if finding.violations
    }
    assert broken == {"I12": [str(ids[1])]}
    await house.executor()
    await house.until("select 1 where not exists (select from unmatched)")
    assert await count(house, "execution") == 2
    [letter] = await house.rows("select queue, reason, convert_from(body, 'utf8') as body from dead_letter")
    assert letter["queue"] == "event.created"
    assert letter["reason"].startswith("EventMissing: ")
    assert str(ids[1]) in letter["body"]


async def test_burst_closes_without_an_event_that_is_gone(house: Installation) -> None:
    await house.apply(sent, add, ON_SENT_LATER)  # so the executor ends before the burst closes
    executor = await house.executor(poll_interval=60)
    ids = [await house.client.publish("late.sent", {"n": n}) for n in (1, 2, 4)]
    await house.until("select 1 where not exists (select from unmatched)")
    await house.ended(executor)
    assert await count(house, "burst") == 0
    await house.rows("delete from event where id = $1 returning 1", ids[1])
    parts = await house.parts()
    async with asyncio.timeout(40):
        while not await count(house, "execution"):
            await asyncio.sleep(0.1)
            await close_bursts.turn(parts, parts.database.session())
    [row] = await house.rows("select params::text as params from payload")
    assert row["params"] == '{"numbers": [1, 4]}'
    [letter] = await house.rows("select reason from dead_letter")
    assert "its burst closes without it" in letter["reason"]
    await house.sound()


async def test_burst_waits_for_an_event_that_is_unmatched_for_days(house: Installation) -> None:
    await house.apply(sent, add, ON_SENT)
    await house.client.publish("late.sent", {"n": 1})
    at = datetime.now(UTC) - timedelta(days=4)
    await house.rows(
        "with old as (update event set id = $1, created_at = $2 returning id) "
        "update unmatched set event_id = old.id from old returning 1",
        UUID(f"{int(at.timestamp() * 1000):012x}70008000000000000000"),
        at,
    )
    async with house.session.transaction() as tx:
        horizon, _ = await bursts.take_due(tx, 1)
    assert horizon == at


async def test_key_of_an_open_execution_is_not_a_new_request(house: Installation) -> None:
    await house.apply(note)
    id = await house.client.start("late.note", {"n": 1}, delay="45d", key="once")
    await house.rows("update idempotency set created_at = created_at - interval '31 days' returning 1")
    await turn(await house.parts())
    assert await house.client.start("late.note", {"n": 1}, delay="45d", key="once") == id


async def test_open_fire_whose_fire_is_gone_leaves_a_dead_letter(house: Installation) -> None:
    await house.rows(OPEN_FIRE + " returning 1", new_id())
    await house.rows("select * from settle_fires(10)")
    assert await count(house, "open_fire") == 0
    [letter] = await house.rows("select reason from dead_letter")
    assert letter["reason"].startswith("FireMissing: ")
