"""Moves finished trees from the hot tables to the archive, so that the hot tables hold what is open."""

from __future__ import annotations

from penstock.database import Session
from penstock.service import Parts
from penstock_executor.loops.loop import Loop

ARCHIVE = "select archive_finished(make_interval(secs => $1), 20)"


async def turn(parts: Parts, session: Session) -> bool:
    moved = (await session.fetch(ARCHIVE, parts.settings.archive_after))[0][0]
    return bool(moved)


LOOP = Loop("archive", lambda settings: min(30.0, max(1.0, settings.archive_after / 4)), turn)
