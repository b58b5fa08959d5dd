"""The loop that measures the whole installation, for /metrics: one replica at a time, for all of them."""

from __future__ import annotations

import time

from penstock.service.assembly import Parts
from penstock.store.session.database import Session
from penstock.store.upkeep import figures
from penstock_executor import installation_metrics
from penstock_executor.loop_runner import Loop

EVERY = 15.0
"""The minimum seconds between two measurements."""
SHARE = 0.05
"""The largest share of one connection's time for measuring: if counting takes long, it is done less often."""


async def turn(parts: Parts, session: Session) -> bool:
    async with session.transaction() as tx:
        due = await figures.due(tx)
        if due is not None:
            began = time.monotonic()
            stale, keys = parts.settings.stale_threshold, parts.settings.metric_label_keys
            now = await figures.measure(tx, stale, due.since, due.until, due.before, keys)
            pause = max(EVERY, (time.monotonic() - began) / SHARE)
            await figures.keep(tx, now, due.until, pause)
    collector = installation_metrics.shown(parts)
    collector.figures, collector.label_keys = await figures.read(session), parts.settings.metric_label_keys
    return False


LOOP = Loop("measure_work", lambda settings: EVERY, turn)
