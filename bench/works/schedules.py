"""Ten thousand schedules, beside the system's own processes and on a database of their own."""

from __future__ import annotations

from bench import schedules
from bench.figures import Measured
from bench.session import Session
from bench.works.effort import Effort

COUNT = 10_000
IDLE = 60.0
"""Seconds of watching, also in a quick run: idle sessions hand in their counts up to ten seconds late."""


async def ten_thousand(session: Session, effort: Effort) -> Measured:
    """Each fires every minute, on three executors of which one is killed every ten seconds. Then as many daily ones,
    that have nothing to do; their cost is what is more than with no schedule at all."""
    broker = session.system.broker
    outcome = await schedules.firing(session.servers, broker=broker, count=COUNT, minutes=effort.minutes)
    none, daily = [
        await schedules.idle(session.servers, broker=broker, count=count, seconds=IDLE)
        for count in (0, COUNT)
    ]
    median, most_of, longest = outcome.whole.lags
    return {
        "fires": (outcome.whole.fires, "1"),
        "missing": (COUNT * effort.minutes - outcome.whole.fires, "1"),
        "wrong": (outcome.wrong, "1"),
        "completed": (outcome.whole.completed, "1"),
        "kills": (outcome.kills, "1"),
        "lag_p50_ms": (1000 * median, "ms"),
        "lag_p99_ms": (1000 * most_of, "ms"),
        "lag_max_ms": (1000 * longest, "ms"),
        "seconds": (outcome.applying, "s"),
        "idle_per_second": (daily, "1/s"),
        "idle_without_per_second": (none, "1/s"),
    }
