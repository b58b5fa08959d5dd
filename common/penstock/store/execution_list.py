"""Executions as lists show them, from the hot table and the archive as one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.store.database import Session
from penstock.store.rows import rows_as


@dataclass(slots=True)
class ListedExecution:
    """An execution as lists show it."""

    id: UUID
    status: str
    action: str
    namespace: str
    attempt: int
    created_at: datetime
    finished_at: datetime | None
    parent: UUID | None
    task: str | None
    item: int


PAGE = """
select * from (
    (select e.id, e.status, n.action, n.name as namespace, e.attempt, e.created_at, e.finished_at, e.parent, e.task, e.item
    from execution e join namespace n on n.id = e.namespace_id
    where ($1::text is null or e.status = $1) and ($2::text is null or n.action = $2)
        and ($3::uuid is null or e.id < $3) and ($5::boolean or e.parent is null)
    order by e.id desc limit $4)
    union all
    (select a.id, a.status, a.action, a.namespace, a.attempt, a.created_at, a.finished_at, a.parent, a.task, a.item
    from archive a
    where ($1::text is null or a.status = $1) and ($2::text is null or a.action = $2)
        and ($3::uuid is null or a.id < $3) and ($5::boolean or a.parent is null)
    order by a.id desc limit $4)
) x order by id desc limit $4
"""


async def page(
    session: Session,
    *,
    status: str | None = None,
    action: str | None = None,
    before: UUID | None = None,
    limit: int = 50,
    children: bool = False,
) -> list[ListedExecution]:
    """The newest executions, open, finished or archived, newest first; `before` an id goes on from a page's end."""
    return rows_as(ListedExecution, await session.fetch(PAGE, status, action, before, limit, children))
