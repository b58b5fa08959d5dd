"""The errors of listed executions, without their long parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson

from penstock.language.moves import COMPLETED, FINAL
from penstock.store.executions.execution_list import ListedExecution
from penstock.store.session.database import Session

# The instant of the end leads to one partition of the archive.
OF_LISTED = """
select x.id, (coalesce(r.error, a.error) - 'traceback' - 'tasks' - 'first')::text as error, coalesce(e.reason, a.reason) as reason
from unnest($1::uuid[], $2::timestamptz[]) as x (id, finished_at)
left join execution e on e.id = x.id
left join result r on r.execution_id = e.id
left join archive a on a.id = x.id and a.finished_at = x.finished_at
"""


async def of_listed(session: Session, rows: Sequence[ListedExecution]) -> dict[UUID, tuple[Any, str | None]]:
    """Return the error and the reason of each listed execution that ended with another status than completed."""
    failing = [row for row in rows if row.status in FINAL and row.status != COMPLETED]
    if not failing:
        return {}
    error_rows = await session.fetch(
        OF_LISTED, [row.id for row in failing], [row.finished_at for row in failing]
    )
    return {
        UUID(int=row["id"].int): (orjson.loads(row["error"]) if row["error"] else None, row["reason"])
        for row in error_rows
    }
