"""What executions printed and logged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.store.database import Session
from penstock.store.rows import rows_as

PAGE = 5000
"""Lines that are read at once."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line: of which attempt, the how manieth of it, and of which stream."""

    attempt: int
    seq: int
    stream: str
    line: str
    at: datetime


AFTER = f"""
select attempt, seq, stream, line, at from log_line
where execution_id = $1 and (attempt, seq) > ($2::smallint, $3::bigint) order by attempt, seq limit {PAGE}
"""


async def after(session: Session, execution: UUID, attempt: int, seq: int) -> list[LogLine]:
    """The next lines of an execution after that one, PAGE at the most."""
    return rows_as(LogLine, await session.fetch(AFTER, execution, attempt, seq))
