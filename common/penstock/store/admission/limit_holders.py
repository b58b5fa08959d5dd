"""The holders of the slots of a limit, and the executions that wait for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from penstock.store.session.database import Session
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class Holder:
    """An execution that holds a slot, and since when."""

    execution_id: UUID
    namespace: str
    status: str
    group_value: str
    since: Annotated[datetime, Field(description="The instant at which it got the slot.")]


HOLDERS = """
select s.execution_id, n.name as namespace, e.status, s.group_value, s.admitted_at as since
from concurrency_limit l join slot s on s.limit_id = l.id
join execution e on e.id = s.execution_id join namespace n on n.id = e.namespace_id
where l.ref = $1 order by s.admitted_at, s.execution_id limit $2
"""


async def holders(session: Session, ref: str, limit: int) -> list[Holder]:
    """Return the holders of a limit, the longest holder first."""
    return rows_as(Holder, await session.fetch(HOLDERS, ref, limit))


@dataclass(frozen=True, slots=True)
class Waiter:
    """An execution that waits for a slot, and since when."""

    execution_id: UUID
    namespace: str
    group_value: str
    priority: int
    since: Annotated[datetime, Field(description="The instant since which it waits.")]


WAITERS = """
select w.execution_id, n.name as namespace, g.gate_group as group_value, -w.rank as priority, w.since
from concurrency_limit l join lane g on g.gate_kind = 'limit' and g.gate_limit = l.id
join waiter w on w.lane = g.id join namespace n on n.id = g.namespace_id
where l.ref = $1 order by g.gate_group, w.rank, w.turn, w.ready_at, w.execution_id limit $2
"""


async def waiters(session: Session, ref: str, limit: int) -> list[Waiter]:
    """Return the waiters of a limit group by group, in the order of their places."""
    return rows_as(Waiter, await session.fetch(WAITERS, ref, limit))
