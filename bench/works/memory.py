"""The memory of the processes of a system, when idle and at full load."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from bench import meters
from bench.figures import Measured
from bench.session import Session
from bench.works import throughput
from bench.works.effort import Effort

EACH = 0.5
"""Seconds between two looks."""


async def rss(session: Session, effort: Effort) -> Measured:
    """By group, all of its processes together, and of all groups but the client:
    MiB before any other work but 200 no-ops, and the most while saturated."""
    await asyncio.sleep(2)
    idle = meters.memory(session.groups)
    peaks = {name: sum(sizes) for name, sizes in idle.items()}

    async def watch() -> None:
        while True:
            for name, sizes in (await asyncio.to_thread(meters.memory, session.groups)).items():
                peaks[name] = max(peaks[name], sum(sizes))
            await asyncio.sleep(EACH)

    watching = asyncio.create_task(watch())
    try:
        await throughput.noop(session, effort)
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    measured: Measured = {f"processes_{name}": (len(sizes), "1") for name, sizes in idle.items()}
    for kind, totals in (("idle", {name: sum(sizes) for name, sizes in idle.items()}), ("saturated", peaks)):
        measured |= {f"{kind}_mib_{name}": (size, "MiB") for name, size in totals.items()}
        # The client is the user's own program.
        measured[f"{kind}_mib_total"] = (sum(totals.values()) - totals["client"], "MiB")
    return measured
