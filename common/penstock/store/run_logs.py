"""What actions print and log, kept with their attempts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from penstock.store.database import Session


class LogLine(NamedTuple):
    """A line that an attempt wrote to `stream` (`stdout`, `stderr`, `log`, ...). `number` puts them in order."""

    execution_id: UUID
    attempt: int
    number: int
    stream: str
    line: str


WRITE = """
insert into log_line (execution_id, attempt, seq, stream, line)
select * from unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::text[], $5::text[])
on conflict do nothing
"""


async def write(session: Session, lines: Sequence[LogLine]) -> None:
    """Store lines. Those that are there already are left alone."""
    await session.fetch(WRITE, *(list(column) for column in zip(*lines, strict=True)))
