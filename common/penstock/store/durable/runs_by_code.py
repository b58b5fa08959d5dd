"""The open runs of durable functions, grouped by the code that they began with."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from penstock.store.session.database import Session
from penstock.store.session.rows import rows_as


@dataclass(slots=True)
class OpenRuns:
    """The number of open runs of a durable function that began with the code `digest`. `current` is the digest of the
    code that is registered now. `example` is one of the runs."""

    ref: str
    digest: str
    current: str | None
    count: int
    example: UUID


OPEN_RUNS = """
select d.ref, d.body ->> 'durable' as digest, max(n.body ->> 'durable') as current, count(*) as count,
    (array_agg(e.id order by e.id))[1] as example
from execution e join definition d on d.id = e.definition_id
left join catalog c on c.kind = d.kind and c.ref = d.ref left join definition n on n.id = c.definition_id
where e.finished_at is null and e.attempt > 0 and d.body ? 'durable'
group by d.ref, d.body ->> 'durable'
order by d.ref, count(*) desc
"""


async def open_runs(session: Session) -> list[OpenRuns]:
    """Return the open runs of all durable functions."""
    return rows_as(OpenRuns, await session.fetch(OPEN_RUNS))
