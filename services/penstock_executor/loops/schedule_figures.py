"""Reads how all schedules do, for /metrics."""

from __future__ import annotations

from penstock.database import Session
from penstock.scheduling import health
from penstock.service import Parts
from penstock.store import schedule_figures as figures
from penstock_executor.loops.loop import Loop
from penstock_executor.schedule_gauges import tally

WINDOW = 300.0
"""Seconds that rates are taken over."""


async def turn(parts: Parts, session: Session) -> bool:
    read = await figures.figures(session, health.LATE, WINDOW)
    orphaned = await figures.orphaned(session, health.ORPHANED) if read["total"] else []
    tally(parts).figures = {**read, "orphaned": sum(row["count"] for row in orphaned)}
    return False


LOOP = Loop("schedule_figures", lambda settings: 45.0, turn)
