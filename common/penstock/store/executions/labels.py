"""The labels of one execution, open or archived."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from penstock.store.session.database import Session

OF_EXECUTION = """
select key, value from label where execution_id = $1
union
select key, value from archived_label where id = $1 and finished_at = $2
order by 1
"""


async def of_execution(session: Session, id: UUID, finished_at: datetime | None) -> dict[str, str]:
    """Return the labels of an execution, by key."""
    return {row["key"]: row["value"] for row in await session.fetch(OF_EXECUTION, id, finished_at)}
