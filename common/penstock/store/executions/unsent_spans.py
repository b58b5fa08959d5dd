"""Traced executions that have ended, with spans that are still to be sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.store.session.database import Transaction
from penstock.store.session.rows import rows_as


@dataclass(slots=True)
class TracedExecution:
    """A traced execution that has ended. `origin` is JSON, with its trace context. `workflow` is the definition of
    the workflow around it."""

    id: UUID
    status: str
    attempt: int
    reason: str | None
    namespace: str
    action: str
    queue: str | None
    parent: UUID | None
    task: str | None
    item: int
    created_at: datetime
    finished_at: datetime
    origin: str
    error: str | None
    workflow: int | None


TAKE = """
with taken as (
    delete from untraced where execution_id in (
        select execution_id from untraced order by execution_id limit $1 for update skip locked)
    returning execution_id
)
select e.id, e.status, e.attempt, e.reason, n.name as namespace, n.action, n.queue, e.parent, e.task, e.item, e.created_at,
    e.finished_at, p.origin::text as origin, r.error ->> 'message' as error, w.definition_id as workflow
from taken t
join execution e on e.id = t.execution_id
join namespace n on n.id = e.namespace_id
join payload p on p.execution_id = e.id
left join result r on r.execution_id = e.id
left join workflow w on w.execution_id = e.parent
"""


async def take(tx: Transaction, limit: int) -> list[TracedExecution]:
    """Delete at most `limit` executions from `untraced`, and return them, to send their spans. No other process gets
    the same ones."""
    return rows_as(TracedExecution, await tx.fetch(TAKE, limit))


@dataclass(slots=True)
class LostAttempt:
    """An attempt that was lost with its worker, so that the worker could not send its span."""

    execution_id: UUID
    attempt: int
    worker: str | None
    worker_id: str | None
    began_at: datetime
    ended_at: datetime


LOST = """
select a.execution_id, a.attempt, regexp_replace(h.actor, '^worker:', '') as worker, a.worker as worker_id, h.at as began_at,
    a.at as ended_at
from attempt a
join history h on h.execution_id = a.execution_id and h.attempt = a.attempt and h.new = 'running'
where a.execution_id = any($1::uuid[]) and a.outcome = 'lost'
    and h.at >= $2::timestamptz - interval '1 minute' and h.at <= a.at
"""


async def lost_attempts(tx: Transaction, ids: Sequence[UUID], since: datetime) -> list[LostAttempt]:
    """Return the lost attempts of these executions. `since` bounds the search: no attempt is older."""
    return rows_as(LostAttempt, await tx.fetch(LOST, ids, since))


JOINED = """
select d.id, j.id as joined
from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[]) as d (id, parent, task, until)
cross join lateral (
    select e.id from execution e where e.parent = d.parent and e.task = d.task and e.finished_at <= d.until
    order by e.id limit $5
) j
"""


async def joined(
    tx: Transaction, predecessors: Sequence[tuple[TracedExecution, str]], limit: int
) -> dict[UUID, list[UUID]]:
    """Return, for each execution, the executions of a preceding task that had ended when it began. `predecessors` has
    each execution with the name of that task. `limit` bounds the executions of a task."""
    rows = await tx.fetch(
        JOINED,
        [row.id for row, _ in predecessors],
        [row.parent for row, _ in predecessors],
        [task for _, task in predecessors],
        [row.created_at for row, _ in predecessors],
        limit,
    )
    by_execution: dict[UUID, list[UUID]] = {}
    for row in rows:
        by_execution.setdefault(row["id"], []).append(row["joined"])
    return by_execution
