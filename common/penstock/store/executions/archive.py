"""The move of finished trees of executions to the archive."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.store.session.database import Session

ARCHIVE = "select moved, last from archive_finished(make_interval(secs => $1), $2, $3)"


@dataclass(slots=True)
class Archived:
    """The number of executions that were `moved`, and the `last` row of `finished` that was handled; None for none."""

    moved: int
    last: int | None


async def archive_finished(session: Session, age: float, limit: int, place: int) -> Archived:
    """Archive trees that ended more than `age` seconds ago: the next `limit` rows of `finished` after `place`."""
    [row] = await session.fetch(ARCHIVE, age, limit, place)
    return Archived(row["moved"], row["last"])
