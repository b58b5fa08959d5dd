"""The errors of listed executions, without their long parts, and the executions that ran them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from penstock.language.moves import COMPLETED, FINAL
from penstock.store.executions.execution_list import ListedExecution
from penstock.store.session.database import Session

OF_LISTED = """
select x.id, (coalesce(r.error, a.error) - 'traceback' - 'tasks' - 'first')::text as error,
    coalesce(e.reason, a.reason) as reason,
    (select c.value ->> 'as' from workflow_command c where c.execution_id = x.id and c.kind = 'rerun' order by c.id desc limit 1)
        as rerun
from unnest($1::uuid[], $2::timestamptz[]) as x (id, finished_at)
left join execution e on e.id = x.id
left join result r on r.execution_id = e.id
-- The instant of the end limits the search to one partition of the archive.
left join archive a on a.id = x.id and a.finished_at = x.finished_at
"""


class ListedError(NamedTuple):
    """The error of a listed execution, its reason, and the newest execution that ran it again."""

    error: Any
    reason: str | None
    rerun: UUID | None


async def of_listed(session: Session, rows: Sequence[ListedExecution]) -> dict[UUID, ListedError]:
    """Return the error of each listed execution that ended with another status than completed."""
    failing = [row for row in rows if row.status in FINAL and row.status != COMPLETED]
    if not failing:
        return {}
    error_rows = await session.fetch(
        OF_LISTED, [row.id for row in failing], [row.finished_at for row in failing]
    )
    return {
        UUID(int=row["id"].int): ListedError(
            orjson.loads(row["error"]) if row["error"] else None,
            row["reason"],
            UUID(row["rerun"]) if row["rerun"] else None,
        )
        for row in error_rows
    }
