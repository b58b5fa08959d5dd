"""The times at which executions waited and ran, from their history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from penstock.store.executions.executions import Execution
from penstock.store.session.database import Session
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class Stay:
    """The stay of an execution inside a run in a status. `until` is None for the current status. `parent` is the execution
    that started it, and `is_workflow` says that it runs by its own tasks, of which there are stays, too."""

    id: UUID
    parent: UUID
    task: str
    is_workflow: bool
    status: str
    since: datetime
    until: datetime | None


MOST = 20_000
"""The maximum number of stays that are read of one run; those of its first executions."""
MAX_EXECUTIONS = MOST // 4
DEEPEST = 10

STAYS = f"""
with recursive archived as materialized (
    select id, parent, task, state is not null as is_workflow
    from archive where root = (select root from archive where id = $1 limit 1)
), inside as (
    (select x.*, 1 as depth from (
        select e.id, e.parent, e.task, n.kind = 'workflow' as is_workflow
        from execution e join namespace n on n.id = e.namespace_id where e.parent = $1
        union all
        select * from archived where parent = $1
    ) x order by id limit {MAX_EXECUTIONS})
    union all
    select c.*, w.depth + 1 from inside w cross join lateral (
        select e.id, e.parent, e.task, n.kind = 'workflow' as is_workflow
        from execution e join namespace n on n.id = e.namespace_id where e.parent = w.id
        union all
        select * from archived where parent = w.id
    ) c where w.is_workflow and w.depth < {DEEPEST}
), member as materialized (
    select * from inside limit {MAX_EXECUTIONS}
)
select * from (
    select m.id, m.parent, m.task, m.is_workflow and (select count(*) from member) < {MAX_EXECUTIONS} as is_workflow,
        h.new as status, h.at as since, lead(h.at) over (partition by h.execution_id order by h.at, h.attempt) as until
    from member m join history h on h.execution_id = m.id
    where h.at >= $2::timestamptz - interval '1 minute' and ($3::timestamptz is null or h.at <= $3 + interval '1 minute')
) x where status <> all($4::text[]) order by since limit {MOST}
"""


async def inside(session: Session, run: Execution, final: Sequence[str]) -> list[Stay]:
    """Return the stays of the executions inside a run, earliest first, without those in `final` statuses. If there are too many
    to be read, no execution counts as a workflow: its own status says when it ran."""
    rows = await session.fetch(STAYS, run.id, run.created_at, run.finished_at, list(final))
    stays = rows_as(Stay, rows)
    return stays if len(stays) < MOST else [replace(stay, is_workflow=False) for stay in stays]
