"""Ends attempts that run past their time although their worker should have ended them: it is told once more, and after
its grace the attempt is taken away from it. The fence discards whatever it reports later."""

from __future__ import annotations

from penstock.moves import CANCELING, RUNNING, TIMEOUT
from penstock.service.assembly import Parts
from penstock.store import executions
from penstock.store.database import Session
from penstock_executor.loops.loop import Loop

OVERDUE = """
select e.id
from claim c
cross join lateral unnest(c.executions) x
join execution e on e.id = x and e.claim = c.worker and e.status in ('running', 'canceling')
join definition d on d.id = e.definition_id
left join payload p on p.execution_id = e.id
where c.claimed_at < clock_timestamp() - make_interval(secs => $1)
    and c.claimed_at < clock_timestamp() - make_interval(secs => $1 + coalesce(
        (p.options #>> '{timeouts,attempt}')::double precision,
        (d.body #>> '{timeouts,attempt}')::double precision, 300))
order by e.id limit 500
"""


async def turn(parts: Parts, session: Session) -> bool:
    """The worker itself enforces the time; here are only those that outlive it by twice the grace."""
    async with session.transaction() as tx:
        rows = await tx.fetch(OVERDUE, 2 * parts.settings.grace)
        if rows:
            await executions.end(
                tx,
                [row["id"] for row in rows],
                [RUNNING, CANCELING],
                TIMEOUT,
                "the attempt went over its time",
            )
    parts.publisher.publish(tx.staged)
    return len(rows) == 500


LOOP = Loop("overdue", lambda settings: settings.sweep_interval, turn)
