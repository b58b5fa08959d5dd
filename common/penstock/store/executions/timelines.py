"""The times at which executions waited and ran, from their history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.store.executions.executions import Execution
from penstock.store.session.database import Session
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class TaskStay:
    """The stay of a task's execution in a status. `until` is None for the current status. `item` is -1 if the task
    has no items."""

    id: UUID
    task: str
    item: int
    status: str
    since: datetime
    until: datetime | None


MOST = 20_000
"""The maximum number of stays that are read of one run; those of its first executions."""

STAYS = f"""
with child as materialized (
    (select id, task, item from execution where parent = $1
    union all
    select id, task, item from archive where parent = $1 and root = (select root from archive where id = $1 limit 1))
    order by id limit {MOST // 4}
)
select * from (
    select c.id, c.task, c.item, h.new as status, h.at as since,
        lead(h.at) over (partition by h.execution_id order by h.at, h.attempt) as until
    from child c join history h on h.execution_id = c.id
    where h.at >= $2::timestamptz - interval '1 minute' and ($3::timestamptz is null or h.at <= $3 + interval '1 minute')
) x where status <> all($4::text[]) order by since limit {MOST}
"""


async def of_tasks(session: Session, run: Execution, final: list[str]) -> list[TaskStay]:
    """Return the stays of the executions of a run's tasks, earliest first, without those in `final` statuses."""
    rows = await session.fetch(STAYS, run.id, run.created_at, run.finished_at, final)
    return rows_as(TaskStay, rows)
