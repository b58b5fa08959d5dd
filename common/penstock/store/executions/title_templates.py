"""The definitions of listed executions: the templates of their titles, with the parameters that they read, and their kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from penstock.store.session.database import Row, Session, Transaction
from penstock.store.session.rows import rows_as


class Titled(Protocol):
    """An execution that may have a title. `finished_at` leads to one partition of the archive."""

    @property
    def id(self) -> UUID: ...
    @property
    def finished_at(self) -> datetime | None: ...
    @property
    def action(self) -> str: ...


@dataclass(slots=True)
class TitleTemplate:
    """The template of an execution's title, and as JSON its parameters and their schema."""

    id: UUID
    action: str
    template: str
    params: str
    schema: str | None


OF_EXECUTIONS = """
select x.id, x.action, f.body ->> 'title' as template, coalesce(p.params, a.params)::text as params,
    f.body ->> 'parameters' as schema
from unnest($1::uuid[], $2::timestamptz[], $3::text[]) as x (id, finished_at, action)
left join execution e on e.id = x.id
left join payload p on p.execution_id = e.id
left join archive a on a.id = x.id and a.finished_at = x.finished_at
join definition f on f.id = coalesce(e.definition_id, a.definition_id)
where f.body ? 'title'
"""


async def of_executions(session: Session | Transaction, rows: Sequence[Titled]) -> list[TitleTemplate]:
    """Return the templates of these executions. Without a title in its definition, an execution has none."""
    columns = [row.id for row in rows], [row.finished_at for row in rows], [row.action for row in rows]
    return rows_as(TitleTemplate, await session.fetch(OF_EXECUTIONS, *columns))


DURABLE = """
select x.id from unnest($1::uuid[], $2::timestamptz[]) as x (id, finished_at)
left join execution e on e.id = x.id
left join archive a on a.id = x.id and a.finished_at = x.finished_at
join definition f on f.id = coalesce(e.definition_id, a.definition_id)
where f.body ? 'durable'
"""


async def durable_among(session: Session, rows: Sequence[Titled]) -> set[UUID]:
    """Return the ids of the executions of durable functions."""
    durable_rows: list[Row] = await session.fetch(
        DURABLE, [row.id for row in rows], [row.finished_at for row in rows]
    )
    return {UUID(int=row["id"].int) for row in durable_rows}
