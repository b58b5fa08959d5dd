"""Finished trees of executions, moved out of the hot tables."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.store.session.database import Session

ARCHIVE = "select moved, last from archive_finished(make_interval(secs => $1), $2, $3)"


@dataclass(slots=True)
class Archived:
    """The number of executions that were `moved`, and the `last` place that was read; None where there was nothing."""

    moved: int
    last: int | None


async def archive_finished(session: Session, age: float, limit: int, place: int) -> Archived:
    """Archive what finished more than `age` seconds ago: the next `limit` notes of finished trees after `place`."""
    [row] = await session.fetch(ARCHIVE, age, limit, place)
    return Archived(row["moved"], row["last"])
