"""The loop that reads the figures of all schedules, for /metrics."""

from __future__ import annotations

from dataclasses import asdict

from penstock.service.assembly import Parts
from penstock.store.schedules import figures, health
from penstock.store.session.database import Session
from penstock_executor.loop_runner import Loop
from penstock_executor.schedule_metrics import tally

WINDOW = 300.0
"""Seconds over which rates are measured."""


async def turn(parts: Parts, session: Session) -> bool:
    read = await figures.figures(session, health.LATE, WINDOW)
    orphaned = await figures.orphaned(session, health.ORPHANED) if read.total else []
    tally(parts).figures = {**asdict(read), "orphaned": sum(row.count for row in orphaned)}
    return False


LOOP = Loop("measure_schedules", lambda settings: 45.0, turn)
