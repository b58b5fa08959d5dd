"""Events, the rules that match them, and their enforcements."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from penstock.store.database import Row, Session, Transaction

STORE = """
select messages, stored, existing, conflicts
from store_events($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8)
"""


async def store(
    tx: Transaction,
    ids: Sequence[UUID],
    triggers: Sequence[str],
    tenants: Sequence[str],
    payloads: Sequence[str],
    sources: Sequence[str | None],
    message_ids: Sequence[str | None],
    digests: Sequence[str | None],
    *,
    matched: bool,
) -> Row:
    """Store events, once for each message id. `matched`: the caller matches the rules in this transaction. Returns what
    `store_events` says: which are `stored`, `existing` or `conflicts`."""
    [row] = await tx.stage(STORE, ids, triggers, tenants, payloads, sources, message_ids, digests, matched)
    return row


READ = """
select id, trigger, tenant, payload::text as payload, source, created_at,
    exists (select from event_wait w where w.trigger = event.trigger) as awaited
from event where id = any($1::uuid[]) and created_at > now() - make_interval(days => $2)
"""


async def read(session: Session | Transaction, ids: Sequence[UUID], *, days: int = 2) -> list[Row]:
    """Events by id that were stored within the last `days`, which is what keeps their old partitions out of it.
    `awaited`: some task of a workflow waits for an event of this trigger."""
    return await session.fetch(READ, list(ids), days)


MATCHED = "delete from unmatched where event_id = any($1::uuid[])"


async def matched(tx: Transaction, ids: Sequence[UUID]) -> None:
    """The rules of these events were looked at, in this transaction."""
    await tx.fetch(MATCHED, list(ids))


RULES = """
select c.trigger, c.ref, c.definition_id, c.enabled, d.body ->> 'action' as action,
    a.definition_id as action_definition_id,
    case when $3 then d.body::text end as body
from catalog c
join definition d on d.id = c.definition_id
left join catalog a on a.ref = d.body ->> 'action' and a.kind in ('action', 'workflow') and a.enabled
where c.kind = 'rule' and c.trigger = any($1::text[]) and (c.enabled or $2)
order by c.ref
"""


async def rules(
    session: Session | Transaction, triggers: Sequence[str], *, disabled: bool = False, bodies: bool = False
) -> list[Row]:
    """The rules of these triggers, with the current version of the action that each starts."""
    return await session.fetch(RULES, list(triggers), disabled, bodies)


ENFORCE = """
select enforce_rules($1::uuid[], $2::uuid[], $3::text[], $4::integer[], $5::integer[], $6::integer[],
    $7::smallint[], $8::text[], $9::text[], $10::text[]) as messages
"""


async def enforce(tx: Transaction, columns: Sequence[Sequence[object]]) -> None:
    """Record matches, once for each rule and event, and start their executions. Columns as in `enforce_rules`."""
    await tx.stage(ENFORCE, *columns)


EXECUTE = "select execute_enforcements($1::uuid[]) as messages"


async def execute(tx: Transaction, ids: Sequence[UUID]) -> None:
    """Start the executions of enforcements that have none yet."""
    await tx.stage_alone(EXECUTE, ids)


ENFORCEMENTS = """
select event_id, rule, execution_id, status, error, created_at from enforcement where event_id = $1 order by rule
"""


async def enforcements(session: Session, event: UUID) -> list[Row]:
    """What came of an event."""
    return await session.fetch(ENFORCEMENTS, event)
