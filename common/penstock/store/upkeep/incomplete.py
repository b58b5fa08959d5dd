"""Rows without their definitions, as after the load of a part of a dump."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.store.session.database import Session
from penstock.store.session.rows import first_as


@dataclass(frozen=True, slots=True)
class WithoutDefinition:
    """The numbers of executions that are not archived, and of current definitions, without their stored versions."""

    executions: int
    current: int


UNKNOWN = """
select
    (select count(*) from execution e where not exists (select from definition d where d.id = e.definition_id))
        as executions,
    (select count(*) from catalog c where not exists (select from definition d where d.id = c.definition_id))
        as current
"""


async def without_definition(session: Session) -> WithoutDefinition:
    """Count the rows without their definitions."""
    row = first_as(WithoutDefinition, await session.fetch(UNKNOWN))
    assert row is not None
    return row
