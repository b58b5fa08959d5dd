"""What executions printed and logged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from penstock.store.database import Session
from penstock.store.rows import rows_as


class NewLine(NamedTuple):
    """A line to store: `seq` puts those of a worker in order; streams are `stdout`, `stderr`, `log` and Penstock's own."""

    execution_id: UUID
    attempt: int
    seq: int
    stream: str
    line: str


STORE = """
insert into log_line (execution_id, attempt, seq, stream, line, worker_id, worker)
select x.*, $6, $7 from unnest($1::uuid[], $2::integer[], $3::bigint[], $4::text[], $5::text[]) x
on conflict do nothing
"""


async def store(session: Session, lines: Sequence[NewLine], worker: UUID, name: str) -> None:
    """Store lines of attempts of this worker. Those that are there already are left alone."""
    await session.fetch(STORE, *(list(column) for column in zip(*lines, strict=True)), worker, name)


PAGE = 5000
"""Lines that are read at once."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line: of which attempt, the how manieth of it, of which stream, and on which worker it was written."""

    attempt: int
    seq: int
    stream: str
    line: str
    at: datetime
    worker_id: UUID
    worker: str


AFTER = f"""
select attempt, seq, stream, line, at, worker_id, worker from log_line
where execution_id = $1 and (attempt, seq) > ($2::integer, $3::bigint) order by attempt, seq limit {PAGE}
"""


async def after(session: Session, execution: UUID, attempt: int, seq: int) -> list[LogLine]:
    """The next lines of an execution after that one, PAGE at the most."""
    return rows_as(LogLine, await session.fetch(AFTER, execution, attempt, seq))
