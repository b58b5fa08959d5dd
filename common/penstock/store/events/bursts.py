"""The rows of bursts: events that wait for their burst to close, and closed bursts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.language.terms.ids import new_id
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
    after which its burst can close."""

    of: BurstKey
    event_id: UUID
    at: datetime
    definition_id: int
    waits: float


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
    where e.created_at > now() - interval '1 day' and e.trigger in (
        select d.body ->> 'trigger' from catalog c join definition d on d.id = c.definition_id
        where c.kind = 'rule' and d.body ? 'debounce'))) as at
"""
# A key is locked until its burst has its execution. An executor that adds an event to it is skipped until it has committed.
TAKE = """
select rule, tenant, key from burst_key where due_at < $1 order by due_at limit $2 for update skip locked
"""


async def take_due(tx: Transaction, limit: int) -> tuple[datetime, list[BurstKey]]:
    """Lock keys with a burst that can close. Return them with the instant before which all events are matched."""
    [row] = await tx.fetch(HORIZON)
    return row["at"], rows_as(BurstKey, await tx.fetch(TAKE, row["at"], limit))


OPEN = """
select k.rule, k.tenant, k.key, b.event_id, b.at, b.definition_id
from unnest($1::text[], $2::text[], $3::text[]) as k (rule, tenant, key)
cross join lateral (
    select b.event_id, b.at, b.definition_id from burst_event b
    where b.rule = k.rule and b.tenant = k.tenant and b.key = k.key and b.burst is null
    order by b.at, b.event_id limit $4) b
"""


async def open_events(
    tx: Transaction, keys: Sequence[BurstKey], limit: int
) -> dict[BurstKey, list[BurstEvent]]:
    """Return the events of the open bursts of these keys, at most `limit` for each, oldest first."""
    rows = await tx.fetch(OPEN, *_columns(keys), limit)
    events: dict[BurstKey, list[BurstEvent]] = {key: [] for key in keys}
    for rule, tenant, key, event_id, at, definition_id in rows:
        of = BurstKey(rule, tenant, key)
        events[of].append(BurstEvent(of, event_id, at, definition_id, 0))
    return events


RULES = """
select d.body ->> 'trigger' as trigger, d.ref, d.id as definition_id, true as enabled, d.body ->> 'action' as action,
    a.definition_id as action_definition_id, null as body
from definition d
left join catalog a on a.ref = d.body ->> 'action' and a.kind in ('action', 'workflow') and a.enabled
where d.id = any($1::integer[])
"""


async def rules(tx: Transaction, definitions: Sequence[int]) -> dict[int, CurrentRule]:
    """Return versions of rules, with the current version of the action that each starts."""
    return {rule.definition_id: rule for rule in rows_as(CurrentRule, await tx.fetch(RULES, definitions))}


@dataclass(frozen=True, slots=True)
class ClosedBurst:
    """A burst that closes: its events, and the one of them that gives its parameters."""

    of: BurstKey
    events: Sequence[BurstEvent]
    keep: str
    event_id: UUID


CLOSE = """
with closed as (
    insert into burst (id, rule, tenant, key, keep, event_id, events, first_at, last_at)
    select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::uuid[], $7::integer[],
        $8::timestamptz[], $9::timestamptz[])
)
update burst_event b set burst = d.burst
from unnest($10::uuid[], $11::text[], $12::uuid[]) as d (event_id, rule, burst)
where b.event_id = any ($10::uuid[]) and b.event_id = d.event_id and b.rule = d.rule
"""


async def close(tx: Transaction, closed: Sequence[ClosedBurst]) -> None:
    """Record closed bursts. The caller holds the locks of their keys, and enforces their rules."""
    ids = [new_id() for _ in closed]
    members = [(event, id) for id, burst in zip(ids, closed, strict=True) for event in burst.events]
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
        [event.event_id for event, _ in members],
        [event.of.rule for event, _ in members],
        [id for _, id in members],
    )


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


PAYLOADS = """
select n.event_id, n.rule, array(
    select m.event_id from burst_event m where m.burst = b.id order by m.at, m.event_id) as events
from unnest($1::uuid[], $2::text[]) as n (event_id, rule)
join burst_event own on own.event_id = n.event_id and own.rule = n.rule
join burst b on b.id = own.burst
"""


async def members(tx: Transaction, places: Sequence[tuple[UUID, str]]) -> dict[tuple[UUID, str], list[UUID]]:
    """Return the events of the closed burst around each of these events and rules, oldest first."""
    rows = await tx.fetch(PAYLOADS, [event for event, _ in places], [rule for _, rule in places])
    return {(row["event_id"], row["rule"]): row["events"] for row in rows}


@dataclass(frozen=True, slots=True)
class BurstOfEvent:
    """The burst of an event and a rule. It is closed if it has an `event_id`, whose parameters it has. `execution_id` is its
    execution, if the parameters of the rule could be rendered."""

    rule: str
    event_id: UUID | None
    events: int
    due_at: datetime | None
    closed_at: datetime | None
    execution_id: UUID | None


OF_EVENT = """
select m.rule, b.event_id, coalesce(b.events, (
        select count(*)::integer from burst_event o
        where o.rule = m.rule and o.tenant = m.tenant and o.key = m.key and o.burst is null)) as events,
    k.due_at, b.closed_at, n.execution_id
from burst_event m left join burst b on b.id = m.burst
left join burst_key k on b.id is null and k.rule = m.rule and k.tenant = m.tenant and k.key = m.key
left join enforcement n on n.event_id = b.event_id and n.rule = m.rule and n.error is null
where m.event_id = $1
"""


async def of_event(session: Session, event: UUID) -> dict[str, BurstOfEvent]:
    """Return the bursts that an event went into, by rule."""
    return {row.rule: row for row in rows_as(BurstOfEvent, await session.fetch(OF_EVENT, event))}


def _columns(keys: Sequence[BurstKey]) -> tuple[list[str], list[str], list[str]]:
    return [key.rule for key in keys], [key.tenant for key in keys], [key.key for key in keys]
