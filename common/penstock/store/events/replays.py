"""Stored events that a rule can see again, each with what the rule has made of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.language.terms.ids import first_id
from penstock.store.events.events import Event
from penstock.store.executions.execution_list import CLOCKS
from penstock.store.session.database import Transaction
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class StoredMatch:
    """The outcome of a rule for an event: the execution of the event or of its burst, or the error. An open burst has neither
    yet."""

    event_id: UUID
    execution_id: UUID | None
    error: str | None


STORED = """
select e.id, e.trigger, e.tenant, e.payload::text as payload, e.source, e.created_at, false as awaited,
    exists (select from unmatched u where u.event_id = e.id) as is_unmatched
from event e
where e.trigger = $1 and e.created_at >= $2 and e.created_at < $3 and e.id >= $4 and e.id < $5
    and ($6::uuid is null or e.id > $6) and ($7::text[] is null or e.tenant = any($7))
order by e.id limit $8
"""


async def stored(
    tx: Transaction,
    trigger: str,
    since: datetime,
    until: datetime,
    *,
    tenants: Collection[str] | None,
    cursor: UUID | None,
    limit: int,
) -> list[tuple[Event, bool]]:
    """Return events of a trigger in the order of their ids, and whether each still waits to be matched."""
    rows = await tx.fetch(
        STORED,
        trigger,
        since,
        until,
        first_id(since, -CLOCKS),
        first_id(until, CLOCKS),
        cursor,
        None if tenants is None else list(tenants),
        limit,
    )
    return [(Event(*list(row)[:-1]), row["is_unmatched"]) for row in rows]


OUTCOMES = """
select event_id, execution_id, error from enforcement where rule = $1 and event_id = any($2::uuid[])
union all
select m.event_id, n.execution_id, n.error
from burst_event m left join burst b on b.id = m.burst
left join enforcement n on n.event_id = b.event_id and n.rule = m.rule
where m.rule = $1 and m.event_id = any($2::uuid[]) and m.dropped is null and b.event_id is distinct from m.event_id
"""


async def outcomes(tx: Transaction, rule: str, events: Sequence[UUID]) -> dict[UUID, StoredMatch]:
    """Return the outcome of a rule for each of these events, by event. The rule may have had a debounce time when it
    saw them."""
    rows = rows_as(StoredMatch, await tx.fetch(OUTCOMES, rule, list(events)))
    return {outcome.event_id: outcome for outcome in rows}
