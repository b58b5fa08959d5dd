"""The rows of bursts and windows: events that wait for their burst or window to close, and closed bursts. A match of a window is
stored as a closed burst."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.language.terms.ids import new_id
from penstock.language.terms.windows import Reason
from penstock.store.events.events import CurrentRule
from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class BurstKey:
    """The key of bursts: those of a rule, a tenant and equal values."""

    rule: str
    tenant: str
    key: str


@dataclass(frozen=True, slots=True)
class BurstEvent:
    """An event that a rule with a debounce time matched at `at`, with the version of the rule. `waits` is the time in seconds
    after which its burst can close. `fits` has the parts of a window that it fits, None for an event of a burst."""

    of: BurstKey
    event_id: UUID
    at: datetime
    definition_id: int
    waits: float
    fits: Sequence[int] | None = None


JOIN = """
select join_bursts($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::integer[], $7::float8[])
"""


async def join(tx: Transaction, new_events: Sequence[BurstEvent]) -> None:
    """Add events to the open bursts of their keys, each once for a rule."""
    await tx.fetch(
        JOIN,
        [event.event_id for event in new_events],
        [event.of.rule for event in new_events],
        [event.of.tenant for event in new_events],
        [event.of.key for event in new_events],
        [event.at for event in new_events],
        [event.definition_id for event in new_events],
        [event.waits for event in new_events],
    )


@dataclass(frozen=True, slots=True)
class WindowEvent:
    """An event that fits parts of a rule's window. Its key is due at `due_at`, at the latest. A late event joins no window."""

    of: BurstKey
    event_id: UUID
    at: datetime
    definition_id: int
    due_at: datetime
    fits: Sequence[int]
    is_late: bool


JOIN_WINDOWS = """
select join_windows($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::integer[], $7::timestamptz[],
    $8::text[], $9::boolean[])
"""


async def join_windows(tx: Transaction, new_events: Sequence[WindowEvent]) -> None:
    """Add events to the windows of their keys, each once for a rule."""
    await tx.fetch(
        JOIN_WINDOWS,
        [event.event_id for event in new_events],
        [event.of.rule for event in new_events],
        [event.of.tenant for event in new_events],
        [event.of.key for event in new_events],
        [event.at for event in new_events],
        [event.definition_id for event in new_events],
        [event.due_at for event in new_events],
        [f"{{{','.join(map(str, event.fits))}}}" for event in new_events],
        [event.is_late for event in new_events],
    )


SLACK = "interval '250 milliseconds'"
"""The time that a burst stays open after its end, for events whose transactions began before its end and commit after it."""
NEXT = (
    f"select extract(epoch from min(due_at) + {SLACK} - clock_timestamp())::float8 as seconds from burst_key"
)


async def next_due(session: Session) -> float | None:
    """Return the seconds until a burst can close; None if no burst is open."""
    [row] = await session.fetch(NEXT)
    seconds: float | None = row["seconds"]
    return seconds


HORIZON = f"""
select least(clock_timestamp() - {SLACK}, (
    select min(e.created_at) from unmatched u join event e on e.id = u.event_id
    -- The id of an event has its time, at most an hour off. So the oldest unmatched event bounds the partitions that are read.
    where e.created_at > (
        select to_timestamp(('x' || left(translate(o.event_id::text, '-', ''), 12))::bit(48)::bigint / 1000.0)
            - interval '2 hours'
        from unmatched o order by o.event_id limit 1)
    and e.trigger in (
        select unnest(coalesce(c.triggers, array[c.trigger])) from catalog c join definition d on d.id = c.definition_id
        where c.kind = 'rule' and (d.body ? 'debounce' or c.triggers is not null)))) as at
"""
# This lock is held until the burst has its execution. If an executor is adding an event to a key, the key is skipped
# until that executor has committed.
TAKE = """
select rule, tenant, key from burst_key where due_at < $1 order by due_at limit $2 for update skip locked
"""


async def take_due(tx: Transaction, limit: int) -> tuple[datetime, list[BurstKey]]:
    """Lock keys with a burst that can close. Return them with the instant before which all events are matched."""
    [row] = await tx.fetch(HORIZON)
    return row["at"], rows_as(BurstKey, await tx.fetch(TAKE, row["at"], limit))


OPEN = """
select k.rule, k.tenant, k.key, b.event_id, b.at, b.definition_id, b.fits
from unnest($1::text[], $2::text[], $3::text[]) as k (rule, tenant, key)
cross join lateral (
    select b.event_id, b.at, b.definition_id, b.fits from burst_event b
    where b.rule = k.rule and b.tenant = k.tenant and b.key = k.key and b.burst is null
    order by b.at, b.event_id limit $4) b
"""


async def open_events(
    tx: Session | Transaction, keys: Sequence[BurstKey], limit: int
) -> dict[BurstKey, list[BurstEvent]]:
    """Return the events of the open bursts of these keys, at most `limit` for each, oldest first."""
    rows = await tx.fetch(OPEN, *_columns(keys), limit)
    events: dict[BurstKey, list[BurstEvent]] = {key: [] for key in keys}
    for rule, tenant, key, event_id, at, definition_id, fits in rows:
        of = BurstKey(rule, tenant, key)
        events[of].append(BurstEvent(of, event_id, at, definition_id, 0, fits))
    return events


RULES = """
select coalesce(d.body ->> 'trigger', '') as trigger, d.ref, d.id as definition_id, true as enabled,
    d.body ->> 'action' as action, a.definition_id as action_definition_id, null as body
from definition d
left join catalog a on a.ref = d.body ->> 'action' and a.kind in ('action', 'workflow') and a.enabled
where d.id = any($1::integer[])
"""


async def rules(tx: Transaction, definitions: Sequence[int]) -> dict[int, CurrentRule]:
    """Return versions of rules, with the current version of the action that each starts."""
    return {rule.definition_id: rule for rule in rows_as(CurrentRule, await tx.fetch(RULES, definitions))}


@dataclass(frozen=True, slots=True)
class Watch:
    """The current version of an enabled rule, and the instant since which it is enabled with this window."""

    ref: str
    definition_id: int
    watches_since: datetime


WATCHES = """
select ref, definition_id, watches_since from catalog where kind = 'rule' and enabled and ref = any($1::text[])
"""


async def watches(tx: Session | Transaction, rules: Sequence[str]) -> dict[str, Watch]:
    """Return the enabled ones of these rules."""
    return {watch.ref: watch for watch in rows_as(Watch, await tx.fetch(WATCHES, rules))}


@dataclass(frozen=True, slots=True)
class ClosedBurst:
    """A burst that closes, or a match of a window: its events, and the event that gives its parameters. `parts` has the part
    that each event took in the match, and `definition_id` is the version of the rule."""

    of: BurstKey
    events: Sequence[BurstEvent]
    keep: str
    event_id: UUID
    definition_id: int
    parts: Sequence[int] | None = None


CLOSE = """
with closed as (
    insert into burst (id, rule, tenant, key, keep, event_id, events, first_at, last_at)
    select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::uuid[], $7::integer[],
        $8::timestamptz[], $9::timestamptz[])
)
update burst_event b set burst = d.burst, part = d.part
from unnest($10::uuid[], $11::text[], $12::uuid[], $13::smallint[]) as d (event_id, rule, burst, part)
where b.event_id = any ($10::uuid[]) and b.event_id = d.event_id and b.rule = d.rule
"""


async def close(tx: Transaction, closed: Sequence[ClosedBurst]) -> None:
    """Record closed bursts. The caller holds the locks of their keys, and enforces their rules."""
    ids = [new_id() for _ in closed]
    members = [
        (event, id, part)
        for id, burst in zip(ids, closed, strict=True)
        for event, part in itertools.zip_longest(burst.events, burst.parts or ())
    ]
    await tx.fetch(
        CLOSE,
        ids,
        [burst.of.rule for burst in closed],
        [burst.of.tenant for burst in closed],
        [burst.of.key for burst in closed],
        [burst.keep for burst in closed],
        [burst.event_id for burst in closed],
        [len(burst.events) for burst in closed],
        [burst.events[0].at for burst in closed],
        [burst.events[-1].at for burst in closed],
        [event.event_id for event, _, _ in members],
        [event.of.rule for event, _, _ in members],
        [id for _, id, _ in members],
        [part for _, _, part in members],
    )


DROP = """
update burst_event b set burst = b.event_id, dropped = d.reason
from unnest($1::uuid[], $2::text[], $3::text[]) as d (event_id, rule, reason)
where b.event_id = any ($1::uuid[]) and b.event_id = d.event_id and b.rule = d.rule
"""


async def drop(tx: Transaction, dropped: Sequence[tuple[BurstEvent, str]]) -> None:
    """Record events that left their windows without a match, with the reasons. The caller holds the locks of their keys."""
    await tx.fetch(
        DROP,
        [event.event_id for event, _ in dropped],
        [event.of.rule for event, _ in dropped],
        [reason for _, reason in dropped],
    )


FORGET = """
delete from burst_event b using unnest($1::uuid[], $2::text[]) as d (event_id, rule)
where b.event_id = d.event_id and b.rule = d.rule and b.burst is null
"""


async def forget(tx: Transaction, missing: Sequence[BurstEvent]) -> None:
    """Delete events that are not stored any more from their open bursts. The caller holds the locks of their keys."""
    await tx.fetch(FORGET, [event.event_id for event in missing], [event.of.rule for event in missing])


SETTLE = """
with gone as (
    delete from burst_key k using unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) as d (rule, tenant, key, due_at)
    where k.rule = d.rule and k.tenant = d.tenant and k.key = d.key and d.due_at is null
)
update burst_key k set due_at = d.due_at
from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) as d (rule, tenant, key, due_at)
where k.rule = d.rule and k.tenant = d.tenant and k.key = d.key and d.due_at is not null
"""


async def settle(tx: Transaction, due: Sequence[tuple[BurstKey, datetime | None]]) -> None:
    """Store the instant at which the next burst of each locked key can close; None: the key has no open burst."""
    await tx.fetch(SETTLE, *_columns([key for key, _ in due]), [at for _, at in due])


MEMBERS = """
select n.event_id, n.rule, array(
    select m.event_id from burst_event m where m.burst = b.id order by m.at, m.event_id) as events, array(
    select m.part from burst_event m where m.burst = b.id order by m.at, m.event_id) as parts
from unnest($1::uuid[], $2::text[]) as n (event_id, rule)
join burst_event own on own.event_id = n.event_id and own.rule = n.rule
join burst b on b.id = own.burst
"""


Members = list[tuple[UUID, int | None]]
"""The events of a closed burst, oldest first, each with the part of the window that it took."""


async def members(tx: Transaction, places: Sequence[tuple[UUID, str]]) -> dict[tuple[UUID, str], Members]:
    """Return the events of the closed burst around each of these events and rules."""
    rows = await tx.fetch(MEMBERS, [event for event, _ in places], [rule for _, rule in places])
    return {
        (row["event_id"], row["rule"]): list(zip(row["events"], row["parts"], strict=True)) for row in rows
    }


@dataclass(frozen=True, slots=True)
class BurstOfEvent:
    """The burst or the window of a rule that an event belongs to. `fits` is None in a burst; in a window it lists the parts
    of the rule that the event fits. `event_id` is None while the burst is open; then it is the event that gives the
    parameters. `execution_id` is the execution that the burst started; None if the rule's parameters could not be
    rendered. `dropped` is the reason why the event left its window without a match."""

    rule: str
    tenant: str
    key: str
    fits: Sequence[int] | None
    dropped: Reason | None
    event_id: UUID | None
    events: int
    due_at: datetime | None
    closed_at: datetime | None
    execution_id: UUID | None


OF_EVENT = """
select m.rule, m.tenant, m.key, m.fits, m.dropped, b.event_id, coalesce(b.events, (
        select count(*)::integer from burst_event o
        where o.rule = m.rule and o.tenant = m.tenant and o.key = m.key and o.burst is null)) as events,
    k.due_at, b.closed_at, n.execution_id
from burst_event m left join burst b on b.id = m.burst
left join burst_key k on m.burst is null and k.rule = m.rule and k.tenant = m.tenant and k.key = m.key
left join enforcement n on n.event_id = b.event_id and n.rule = m.rule and n.error is null
where m.event_id = $1
"""


async def of_event(session: Session, event: UUID) -> dict[str, BurstOfEvent]:
    """Return the bursts that an event went into, by rule."""
    return {row.rule: row for row in rows_as(BurstOfEvent, await session.fetch(OF_EVENT, event))}


def _columns(keys: Sequence[BurstKey]) -> tuple[list[str], list[str], list[str]]:
    return [key.rule for key in keys], [key.tenant for key in keys], [key.key for key in keys]
