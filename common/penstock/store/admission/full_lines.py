"""The lines of executions whose slots, or workers, are held by executions that wait themselves."""

from __future__ import annotations

from uuid import UUID

from penstock.store.session.database import Session

# `not exists` reads the holders of a key only up to the first that goes on by itself. The lines of a busy limit are left out
# after one holder.
QUEUED = """
select l.execution_id as id
from (select distinct on (gate_limit, gate_group) gate_limit, gate_group, execution_id from lane
      where gate_kind = 'limit' order by gate_limit, gate_group, rank, place, ready_at, execution_id limit $1) l
where not exists (
    select from slot s join execution e on e.id = s.execution_id
    where s.limit_id = l.gate_limit and s.group_value = l.gate_group
        and not exists (select from suspended u where u.execution_id = e.id and u.children <> '{}' and u.until is null)
        and not (e.status = 'running' and (
            exists (select from workflow w where w.execution_id = e.id)
            or exists (select from effect f join awaited a on a.execution_id = f.id
                       where f.parent = e.id and f.kind = 'execution'))))
limit $2
"""
SCHEDULED = """
select e.id
from (select executions from claim order by claimed_at limit $1) c cross join unnest(c.executions) r (id)
join effect f on f.parent = r.id and f.kind = 'execution' join execution e on e.id = f.id
where e.status = 'scheduled' and exists (select from awaited a where a.execution_id = e.id)
limit $2
"""


async def behind_waiting_holders(session: Session, lines: int, limit: int) -> list[UUID]:
    """Return at most `limit` executions of each kind that may wait for executions which wait themselves. Queued: the first one
    of each line at a full key without a holder that goes on by itself. Scheduled: the child of an attempt that waits for it in
    its slot of a worker. At most `lines` lines, and as many claims of workers, are read."""
    queued = await session.fetch(QUEUED, lines, limit)
    scheduled = await session.fetch(SCHEDULED, lines, limit)
    return [UUID(int=row["id"].int) for row in (*queued, *scheduled)]
