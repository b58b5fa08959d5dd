"""The loop that moves finished trees to the archive, so that the hot tables contain open executions."""

from __future__ import annotations

from penstock.service.assembly import Parts
from penstock.store.executions import archive
from penstock.store.session.database import Session
from penstock.store.upkeep.scan_start import scan_start
from penstock_executor.loop_runner import Loop

BATCH = 20
"""Rows of `finished` that one turn of the loop handles. A row has the roots that one transaction finished."""


async def turn(parts: Parts, session: Session) -> bool:
    start = scan_start(session, "archive", 0)
    archived = await archive.archive_finished(session, parts.settings.archive_after, BATCH, start.place)
    if archived.last is not None:
        start.move_to(archived.last)
    return bool(archived.moved)


LOOP = Loop("archive_finished", lambda settings: min(30.0, max(1.0, settings.archive_after / 4)), turn)
