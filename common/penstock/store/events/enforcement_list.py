"""The list of enforcements, with its filter."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from penstock.store.session.database import Session
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class EnforcementFilter:
    """A filter of enforcements: all of them, or those that match every field that is set. `status` is one of
    `penstock.language.moves.enforcements.MOVES`. `tenants` restricts the result to events of these tenants."""

    rule: str | None = None
    event: UUID | None = None
    status: str | None = None
    tenants: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class ListedEnforcement:
    """A rule that matched an event."""

    id: Annotated[
        UUID,
        Field(description="The id of the enforcement. It is also in the AMQP message `enforcement.created`."),
    ]
    event: Annotated[UUID, Field(description="The id of the event.")]
    rule: str
    trigger: str
    tenant: str
    status: Annotated[
        str,
        Field(
            description="`executed`: it started an execution. `failed`: the condition or the parameters raised an error. "
            "`created`: it is about to start an execution."
        ),
    ]
    execution: Annotated[
        UUID | None, Field(description="The execution that it started; null if the rule failed.")
    ]
    error: Annotated[str | None, Field(description="The reason why the rule failed; null: it did not.")]
    created_at: datetime


PAGE = """
select f.execution_id as id, f.event_id as event, f.rule, d.body ->> 'trigger' as trigger, f.tenant, f.status,
    case when f.status = 'executed' then f.execution_id end as execution, f.error, f.created_at
from (
    -- The enforcement of a failed rule has no namespace, so its tenant is read from the event. Few rules fail.
    select e.*, coalesce(split_part(n.name, '::', 1), (select v.tenant from event v where v.id = e.event_id), 'public') as tenant
    from enforcement e left join namespace n on n.id = e.namespace_id
) f
join definition d on d.id = f.definition_id
where ($1::text is null or f.rule = $1) and ($2::uuid is null or f.event_id = $2) and ($3::text is null or f.status = $3)
    and ($4::text[] is null or f.tenant = any ($4))
    and ($5::uuid is null or (f.event_id, f.rule) < ($5, $6::text))
order by f.event_id desc, f.rule desc limit $7
"""

Place = tuple[UUID, str]
"""The event and the rule of an enforcement."""


async def page(
    session: Session, filters: EnforcementFilter, *, cursor: Place | None = None, limit: int = 50
) -> list[ListedEnforcement]:
    """Return a page of enforcements, those of the newest events first. `cursor` is the last place of the page
    before."""
    event, rule = cursor or (None, None)
    rows = await session.fetch(
        PAGE,
        filters.rule,
        filters.event,
        filters.status,
        None if filters.tenants is None else list(filters.tenants),
        event,
        rule,
        limit,
    )
    return rows_as(ListedEnforcement, rows)
