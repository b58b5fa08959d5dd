"""The lines that executions printed and logged."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, NamedTuple
from uuid import UUID

from pydantic import Field

from penstock.store.session import clock
from penstock.store.session.database import Session
from penstock.store.session.rows import rows_as


class NewLine(NamedTuple):
    """A line to store. `seq` orders the lines of an attempt. Streams are `stdout`, `stderr`, `log` and Penstock's
    own. `written` is the instant of the writing by `time.monotonic`; None: it is stored at once."""

    execution_id: UUID
    attempt: int
    seq: int
    stream: str
    line: str
    written: float | None = None


OLDEST_S = 600.0
"""The maximum seconds by which the time of a line is before its storing: older partitions may be gone."""
STORE = """
insert into log_line (execution_id, attempt, seq, stream, line, at, worker_id, worker)
select x.id, x.attempt, x.seq, x.stream, x.line, clock_timestamp() - make_interval(secs => x.age), $7, $8
from unnest($1::uuid[], $2::integer[], $3::bigint[], $4::text[], $5::text[], $6::float8[])
    as x (id, attempt, seq, stream, line, age)
on conflict do nothing
"""


async def store(session: Session, lines: Sequence[NewLine], worker: UUID, name: str) -> None:
    """Store lines of attempts of this worker, each with the time of its writing. A line that is stored already is left
    alone."""
    now = time.monotonic()
    *columns, written = zip(*lines, strict=True)
    ages = [0.0 if instant is None else min(max(now - instant, 0.0), OLDEST_S) for instant in written]
    await session.fetch(STORE, *(list(column) for column in columns), ages, worker, name)


PAGE = 5000
"""Lines that one query reads."""
LATE = 2.0
"""Seconds after the end of an execution until which its last lines may be stored. Workers write lines a few times a
second, separately from ends."""


async def are_all_there(session: Session, finished_at: datetime | None) -> bool:
    """Return True if a read from now on contains the last lines of an execution that ended at `finished_at`. Lines of
    a worker that is cut off from the database can come later."""
    return finished_at is not None and await clock.seconds_since(session, finished_at) > LATE


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that an attempt wrote."""

    attempt: int
    seq: Annotated[int, Field(description="The number of the line within its attempt.")]
    stream: Annotated[
        str,
        Field(
            description="The output to which the line was written: `stdout`, `stderr`, `log` (a logger), or "
            "`progress` (a reported progress, as JSON)."
        ),
    ]
    line: Annotated[str, Field(description="The text of the line; secrets are `***`.")]
    at: Annotated[datetime, Field(description="The instant of the line.")]
    worker_id: Annotated[UUID, Field(description="The id of the worker that wrote it.")]
    worker: Annotated[str, Field(description="The name of the worker that wrote it.")]


LATEST = """
select attempt, seq, stream, line, at, worker_id, worker from log_line
where execution_id = $1 and stream = $2 order by attempt desc, seq desc limit 1
"""


async def latest(session: Session, execution: UUID, stream: str) -> LogLine | None:
    """Return the last line of a stream, of the last attempt that wrote one; None for none."""
    rows = rows_as(LogLine, await session.fetch(LATEST, execution, stream))
    return rows[0] if rows else None


AFTER_EACH = f"""
select execution_id, attempt, seq, stream, line, at, worker_id, worker from (
    select l.*, max(l.at) over (partition by l.execution_id order by l.attempt, l.seq) as until
    from unnest($1::uuid[], $2::integer[], $3::bigint[]) c (id, attempt, seq)
    cross join lateral (
        select * from log_line l where l.execution_id = c.id and (l.attempt, l.seq) > (c.attempt, c.seq)
        order by l.attempt, l.seq limit {PAGE}
    ) l
) x order by until, execution_id, attempt, seq limit {PAGE}
"""


async def after_each(session: Session, last: Mapping[UUID, tuple[int, int]]) -> list[tuple[UUID, LogLine]]:
    """Return the next lines of several executions, each after its `last` line (attempt, number), in the order of
    time; at most PAGE. Lines of one execution keep their own order."""
    rows = await session.fetch(
        AFTER_EACH,
        list(last),
        [attempt for attempt, _ in last.values()],
        [seq for _, seq in last.values()],
    )
    return [(row["execution_id"], LogLine(**{f: row[f] for f in LogLine.__slots__})) for row in rows]
