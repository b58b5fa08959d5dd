"""The effects of executions: the events that they published, and the executions that they started, through their
workers. The effects of an event are the waits that it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from penstock.store.session.database import Row, Session, Transaction
from penstock.store.session.rows import rows_as

Kind = Literal["event", "execution"]

OWNED = """
select e.id from execution e join unnest($2::uuid[], $3::integer[]) as a (id, attempt) on a.id = e.id
where e.attempt = a.attempt and e.claim = $1 and e.status in ('running', 'canceling')
order by e.id for share of e
"""


async def lock_owned(tx: Transaction, worker: UUID, attempts: Sequence[tuple[UUID, int]]) -> set[UUID]:
    """Lock the executions of these attempts, each by id and number, which this worker owns (I2). So no transaction
    takes an attempt away before this one ends. Return their ids; the other attempts are lost."""
    rows: list[Row] = await tx.fetch(
        OWNED, worker, [id for id, _ in attempts], [attempt for _, attempt in attempts]
    )
    return {UUID(int=row["id"].int) for row in rows}


IN_ORDER = "select from execution where id = any($1::uuid[]) order by id for no key update"


async def lock_in_order(tx: Transaction, ids: Sequence[UUID]) -> None:
    """Lock these executions in the order of their ids. An attempt that signals an execution locks both. Two attempts that
    signal each other's execution would otherwise wait for each other."""
    await tx.fetch(IN_ORDER, ids)


WAITING = "select id from execution where id = any($1::uuid[]) and status = 'waiting'"


async def filter_waiting(tx: Transaction, ids: Sequence[UUID]) -> set[UUID]:
    """Filter `ids` to the executions that wait."""
    return {UUID(int=row["id"].int) for row in await tx.fetch(WAITING, ids)}


RECORD = """
with recorded as (
    insert into effect (parent, id, kind)
    select * from unnest($1::uuid[], $2::uuid[], $3::text[]) as d (parent, id, kind) order by 1, 2
    on conflict do nothing
)
select join_chains($1::uuid[], $2::uuid[])
"""


async def record(tx: Transaction, effects: Sequence[tuple[UUID, UUID, Kind]]) -> None:
    """Record effects, each as the execution that caused it, the id of the effect, and its kind. They join the chains of
    that execution's tree."""
    await tx.fetch(
        RECORD,
        [parent for parent, _, _ in effects],
        [id for _, id, _ in effects],
        [kind for *_, kind in effects],
    )


@dataclass(slots=True)
class Effect:
    """An event that an action published through its worker, or an execution that it started."""

    id: Annotated[UUID, Field(description="The id of the event or the execution.")]
    kind: Annotated[
        Kind, Field(description="`event`: the action published it. `execution`: the action started it.")
    ]
    created_at: datetime
    name: Annotated[
        str | None,
        Field(
            description="The trigger or the action; null: the retention has deleted the event or execution."
        ),
    ]
    status: Annotated[
        str | None,
        Field(
            description="The present status of the execution; null: it is an event, or the execution is deleted."
        ),
    ]


MAX_EFFECTS = 200
"""The maximum number of effects of one execution that are shown."""
CAUSED = """
select f.id, f.kind, f.created_at, coalesce(v.trigger, d.ref, a.action) as name, coalesce(e.status, a.status) as status
from (select * from effect where parent = $1 order by created_at, id limit $2) f
left join event v on f.kind = 'event' and v.id = f.id and v.created_at between f.created_at - interval '1 day' and f.created_at
left join execution e on f.kind = 'execution' and e.id = f.id
left join definition d on d.id = e.definition_id
left join archive a on f.kind = 'execution' and e.id is null and a.id = f.id
order by f.created_at, f.id
"""


async def caused(session: Session, parent: UUID, limit: int = MAX_EFFECTS) -> list[Effect]:
    """Return at most `limit` effects of an execution, oldest first."""
    return rows_as(Effect, await session.fetch(CAUSED, parent, limit))


RECORD_CONTINUED = """
insert into effect (parent, id, kind)
select event, id, 'execution' from unnest($1::uuid[], $2::uuid[]) as d (event, id) order by 1, 2 on conflict do nothing
"""


async def record_continued(tx: Transaction, pairs: Sequence[tuple[UUID, UUID]]) -> None:
    """Record the executions that events continued, each as the id of the event and that of the execution."""
    await tx.fetch(RECORD_CONTINUED, [event for event, _ in pairs], [id for _, id in pairs])


@dataclass(slots=True)
class Continued:
    """An execution that an event continued. `id`: the execution that waited. `run`: the workflow or function around it, if
    there is one."""

    id: Annotated[UUID, Field(description="The id of the execution that waited for the event.")]
    run: Annotated[
        UUID | None,
        Field(
            description="The workflow or durable function that contains it; null: it is deleted, or `id` is not a task or step."
        ),
    ]
    task: Annotated[
        str | None,
        Field(
            description="The task or step that waited; null: it is deleted, or `id` is not a task or step."
        ),
    ]
    action: Annotated[
        str | None, Field(description="The action or workflow that continued; null: it is deleted.")
    ]
    status: Annotated[
        str | None, Field(description="The present status of that execution; null: it is deleted.")
    ]


CONTINUED = """
select f.id, coalesce(e.parent, a.parent) as run, coalesce(e.task, a.task) as task, coalesce(d.ref, b.action, a.action) as action,
    coalesce(p.status, b.status, e.status, a.status) as status
from (select * from effect where parent = $1 and kind = 'execution' order by created_at, id limit $2) f
left join execution e on e.id = f.id
left join archive a on e.id is null and a.id = f.id
left join execution p on p.id = coalesce(e.parent, a.parent)
left join definition d on d.id = coalesce(p.definition_id, case when e.parent is null then e.definition_id end)
left join archive b on p.id is null and b.id = coalesce(e.parent, a.parent)
order by f.created_at, f.id
"""


async def continued(session: Session, event: UUID, limit: int = MAX_EFFECTS) -> list[Continued]:
    """Return at most `limit` executions that an event continued, oldest first."""
    return rows_as(Continued, await session.fetch(CONTINUED, event, limit))


PUBLISHER = "select parent from effect where id = $1 and kind = 'event' order by created_at, parent limit 1"


async def publisher_of(session: Session, event: UUID) -> UUID | None:
    """Return the execution that published an event first; None if none did, or its row is older than the retention."""
    rows: list[Row] = await session.fetch(PUBLISHER, event)
    return UUID(int=rows[0]["parent"].int) if rows else None
