"""Events, the rules that match them, and their enforcements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import orjson

from penstock.language.terms.ids import new_id
from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as
from penstock.tracing import Carrier


@dataclass(slots=True)
class NewEvent:
    """An event to store; `payload` is JSON. An event with a `message_id` is stored once for its tenant, trigger and
    source. `digest` identifies the payload, to detect another event with the same message id. `trace` is the trace
    context of the event. `max_depth` and `max_descendants` bound the chain that it begins."""

    trigger: str
    tenant: str
    payload: str
    source: str | None
    message_id: str | None = None
    digest: str | None = None
    trace: Carrier | None = None
    max_depth: int | None = None
    max_descendants: int | None = None
    id: UUID = field(default_factory=new_id, kw_only=True)


@dataclass(slots=True)
class StoredEvents:
    """The result of storing events. `stored` are the new ones. The other events have a message id that was stored
    before, with the same payload (`existing`) or another one (`conflicts`): their ids are mapped to the stored
    events."""

    stored: list[UUID]
    existing: dict[UUID, UUID]
    conflicts: dict[UUID, UUID]


STORE = """
select messages, stored, existing, conflicts
from store_events($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8)
"""


async def store(tx: Transaction, events: Sequence[NewEvent], *, matched: bool) -> StoredEvents:
    """Store events, once for each message id. `matched`: the caller matches the rules in this transaction."""
    [row] = await tx.stage(
        STORE,
        [event.id for event in events],
        [event.trigger for event in events],
        [event.tenant for event in events],
        [event.payload for event in events],
        [event.source for event in events],
        [event.message_id for event in events],
        [event.digest for event in events],
        matched,
    )
    stored = StoredEvents(row["stored"], dict(row["existing"]), dict(row["conflicts"]))
    await _keep_traces(tx, events, set(stored.stored))
    await _begin_chains(tx, [event for event in events if event.id in set(stored.stored)])
    return stored


KEEP_TRACES = """
insert into event_trace (event_id, trace) select d.id, d.trace::jsonb from unnest($1::uuid[], $2::text[]) as d (id, trace)
"""


async def _keep_traces(tx: Transaction, events: Sequence[NewEvent], stored: Collection[UUID]) -> None:
    traces = {event.id: event.trace for event in events if event.trace is not None and event.id in stored}
    if traces:
        await tx.fetch(KEEP_TRACES, list(traces), [orjson.dumps(trace).decode() for trace in traces.values()])


BEGIN_CHAINS = "select begin_chains($1::uuid[], $2::integer[], $3::integer[])"


async def _begin_chains(tx: Transaction, events: Sequence[NewEvent]) -> None:
    bounded = [event for event in events if event.max_depth or event.max_descendants]
    if bounded:
        await tx.fetch(
            BEGIN_CHAINS,
            [event.id for event in bounded],
            [event.max_depth for event in bounded],
            [event.max_descendants for event in bounded],
        )


@dataclass(slots=True)
class Event:
    """A stored event; `payload` and `trace` (None if it is not traced) are JSON. `awaited`: a task of some workflow
    waits for an event of this trigger."""

    id: UUID
    trigger: str
    tenant: str
    payload: str
    source: str | None
    created_at: datetime
    awaited: bool
    trace: str | None = None


READ = """
select id, trigger, tenant, payload::text as payload, source, created_at,
    exists (select from event_wait w where w.trigger = event.trigger) as awaited,
    (select t.trace::text from event_trace t where t.event_id = event.id) as trace
from event where id = any($1::uuid[]) and created_at > now() - make_interval(days => $2)
"""


async def read(session: Session | Transaction, ids: Sequence[UUID], *, days: int = 2) -> list[Event]:
    """Return events by id. Only events of the last `days` are found, so that older partitions are not read."""
    return [Event(*row) for row in await session.fetch(READ, list(ids), days)]


UNMATCHED = "select event_id from unmatched where event_id = any($1::uuid[]) order by 1"


async def unmatched(tx: Transaction, ids: Sequence[UUID]) -> list[UUID]:
    """Filter `ids` to the events that no process has matched with rules."""
    return [UUID(int=row["event_id"].int) for row in await tx.fetch(UNMATCHED, list(ids))]


STORED = "select id from event where id = any($1::uuid[])"


async def stored(session: Session, ids: Sequence[UUID]) -> set[UUID]:
    """Filter `ids` to the events that are still stored."""
    return {UUID(int=row["id"].int) for row in await session.fetch(STORED, list(ids))} if ids else set()


COMPLETE = """
with locked as materialized (
    select e.id, e.created_at from event e
    where e.id = any($1::uuid[]) and e.created_at between $4 and $5 order by e.id for no key update
)
update event e set payload = d.payload::jsonb
from locked l join unnest($1::uuid[], $2::text[], $3::text[]) as d (id, payload, tenant) on d.id = l.id
where e.id = l.id and e.created_at = l.created_at
"""


async def complete(tx: Transaction, completed: Sequence[Event]) -> None:
    """Store the payloads of system events to which the caller has added what the database could not tell."""
    instants = [event.created_at for event in completed]
    await tx.fetch(
        COMPLETE,
        [event.id for event in completed],
        [event.payload for event in completed],
        [event.tenant for event in completed],
        min(instants),
        max(instants),
    )


MATCHED = "delete from unmatched where event_id = any($1::uuid[])"


async def matched(tx: Transaction, ids: Sequence[UUID]) -> None:
    """Record that the rules of these events were matched in this transaction."""
    await tx.fetch(MATCHED, list(ids))


@dataclass(slots=True)
class CurrentRule:
    """The current version of a rule, and of the action that it starts (None: not registered, or disabled). A rule with a
    window has an entry for each of its triggers. `body` is JSON, or None if the caller asked for no bodies."""

    trigger: str
    ref: str
    definition_id: int
    enabled: bool
    action: str
    action_definition_id: int | None
    body: str | None


RULES = """
select t.trigger, c.ref, c.definition_id, c.enabled, d.body ->> 'action' as action,
    a.definition_id as action_definition_id,
    case when $3 then d.body::text end as body
from catalog c
cross join lateral unnest(coalesce(c.triggers, array[c.trigger])) as t (trigger)
join definition d on d.id = c.definition_id
left join catalog a on a.ref = d.body ->> 'action' and a.kind in ('action', 'workflow') and a.enabled
where c.kind = 'rule' and (c.trigger = any($1::text[]) or c.triggers && $1::text[]) and t.trigger = any($1::text[])
    and (c.enabled or $2)
order by c.ref
"""


async def rules(
    session: Session | Transaction, triggers: Sequence[str], *, disabled: bool = False, bodies: bool = False
) -> list[CurrentRule]:
    """Return the rules of these triggers, with the current version of the action that each starts."""
    return rows_as(CurrentRule, await session.fetch(RULES, list(triggers), disabled, bodies))


@dataclass(slots=True)
class Enforcement:
    """The outcome of one rule that matched an event."""

    event_id: UUID
    rule: str
    execution_id: UUID | None
    status: str
    error: str | None
    created_at: datetime


ENFORCEMENTS = """
select event_id, rule, execution_id, status, error, created_at from enforcement where event_id = $1 order by rule
"""


async def enforcements(session: Session, event: UUID) -> list[Enforcement]:
    """Return the enforcements of an event."""
    return rows_as(Enforcement, await session.fetch(ENFORCEMENTS, event))
