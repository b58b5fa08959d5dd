"""The recoveries: attempts that were lost with their workers, and fires with executions that were lost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from penstock.store.session import clock
from penstock.store.session.database import Session
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class Recovery:
    """A detected loss of an attempt or of a fire's execution, and what followed."""

    kind: Annotated[
        str,
        Field(
            description="`attempt`: an attempt whose worker was lost. `fire`: a fire of a schedule whose "
            "execution was lost."
        ),
    ]
    at: Annotated[
        datetime,
        Field(
            description="The instant at which the loss was detected. For a fire: the instant at which the fire "
            "was recorded."
        ),
    ]
    execution: Annotated[UUID | None, Field(description="The id of the execution; null: the fire has none.")]
    subject: Annotated[str, Field(description="The action, or the schedule.")]
    tenant: str
    number: Annotated[
        int, Field(description="The number of the attempt; for a fire, the number of its recoveries.")
    ]
    worker: Annotated[
        str | None, Field(description="The name of the worker that was lost; null: not known, or a fire.")
    ]
    why: Annotated[str | None, Field(description="The reason why it counts as lost; null: not known.")]
    status: Annotated[
        str | None,
        Field(description="The present status of the execution; null: it has none, or is deleted."),
    ]


# This reads little: few attempts are lost, and each table is read back to `$1` only.
DEFAULT_PERIOD_S = 86_400
PAGE = """
select * from (
    select 'attempt' as kind, a.at, a.execution_id as execution, n.action as subject, split_part(n.name, '::', 1) as tenant,
        a.attempt as number, coalesce(p.name, a.worker) as worker, a.error ->> 'message' as why, e.status
    from attempt a join execution e on e.id = a.execution_id join namespace n on n.id = e.namespace_id
    left join process p on p.id::text = a.worker
    where a.outcome = 'lost' and a.at >= $1
    union all
    select 'attempt', t.at, x.id, x.action, split_part(x.namespace, '::', 1), t.attempt,
        coalesce(p.name, t.worker), t.error ->> 'message', x.status
    from archive x cross join jsonb_to_recordset(x.attempts)
        as t (attempt integer, outcome text, worker text, at timestamptz, error jsonb)
    left join process p on p.id::text = t.worker
    where x.finished_at >= $1 and x.recoveries > 0 and t.outcome = 'lost' and t.at >= $1
    union all
    -- A fire does not store the instant of its recovery, so it has the instant at which its execution was created.
    select 'fire', f.made_at, f.execution_id, f.schedule, coalesce(s.tenant, 'public'), f.recoveries, null, f.error,
        coalesce(f.outcome, e.status)
    from fire f left join execution e on e.id = f.execution_id
    left join lateral (
        select d.body ->> 'tenant' as tenant from catalog c join definition d on d.id = c.definition_id
        where c.kind = 'schedule' and c.ref = f.schedule) s on true
    where f.recoveries > 0 and f.due_at >= $1 - interval '1 day' and f.made_at >= $1
) r
where ($2::text is null or r.kind = $2) and ($3::text is null or r.worker = $3) and ($4::text[] is null or r.tenant = any ($4))
order by r.at desc, r.execution desc limit $5
"""


async def newest(
    session: Session,
    since: datetime | None = None,
    *,
    kind: str | None = None,
    worker: str | None = None,
    tenants: Collection[str] | None = None,
    limit: int = 50,
) -> list[Recovery]:
    """Return the recoveries since an instant (aware), by default those of a day, the newest first."""
    begin = since or await clock.in_seconds(session, -DEFAULT_PERIOD_S)
    rows = await session.fetch(PAGE, begin, kind, worker, None if tenants is None else list(tenants), limit)
    return rows_as(Recovery, rows)
