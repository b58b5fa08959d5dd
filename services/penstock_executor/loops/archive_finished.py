"""Moves finished trees from the hot tables to the archive, so that the hot tables hold what is open."""

from __future__ import annotations

from penstock.service.assembly import Parts
from penstock.store.database import Session
from penstock.store.scan_start import scan_start
from penstock_executor.loops.loop import Loop

ARCHIVE = "select moved, last from archive_finished(make_interval(secs => $1), 20, $2)"


async def turn(parts: Parts, session: Session) -> bool:
    begin = scan_start(session, "archive", 0)
    [(moved, last)] = await session.fetch(ARCHIVE, parts.settings.archive_after, begin.place)
    if last is not None:
        begin.move_to(last)
    return bool(moved)


LOOP = Loop("archive", lambda settings: min(30.0, max(1.0, settings.archive_after / 4)), turn)
