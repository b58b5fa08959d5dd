"""One run of chaos: load and faults for a while, then peace, then the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos import report, work
from tests.chaos.cluster import cluster
from tests.chaos.ledger import Ledger, settle
from tests.chaos.load import Load
from tests.chaos.machines import Spread
from tests.chaos.nemesis import Happened, Nemesis

SHORT: Mapping[str, Any] = {
    "heartbeat_interval": 0.8,
    "stale_threshold": 2.5,
    "sweep_interval": 1.0,
    "relay_interval": 0.5,
    "relay_age": 1.0,
    "restage_age": 3.0,
    "poll_interval": 1.0,
    "lease": 5.0,
    "grace": 2.0,
    "delivery_limit": 20,
}
"""Thresholds of two and three seconds."""
DEFAULT: Mapping[str, Any] = {
    "heartbeat_interval": 10.0,
    "stale_threshold": 60.0,
    "sweep_interval": 30.0,
    "relay_interval": 5.0,
    "relay_age": 5.0,
    "restage_age": 60.0,
    "poll_interval": 5.0,
    "lease": 60.0,
    "grace": 30.0,
    "delivery_limit": 20,
}
"""The thresholds that installations have."""
OPEN = """
select 1 where not exists (select from execution where finished_at is null)
    and not exists (select from event v where not exists (select from enforcement n where n.event_id = v.id)
                    and (v.payload ->> 'n')::bigint % 2 = 0)
"""


@dataclass
class Run:
    """The result of a run: the ledger, the faults, and all of it as text."""

    ledger: Ledger
    faults: Sequence[Happened]
    text: str


async def chaos(
    log: Path,
    *,
    seconds: float,
    seed: int,
    settings: Mapping[str, Any],
    patience: float,
    pace: float = 1.0,
    only: Sequence[str] = (),
    library: Path | None = None,
) -> Run:
    """`patience`: seconds until everything must have come to rest after the last fault is mended. `pace`: pauses
    between faults are so many times longer. `only`: names of faults, where it is not all of them. `library`: a built
    library for Node, for a worker on Node."""
    async with cluster(log, settings, disk_mb=int(150 + seconds / 3), library=library) as it:
        await it.until_started()
        load, nemesis = Load(it.house.client), Nemesis(it, seed, only)
        await asyncio.gather(
            load.run(seconds),
            nemesis.rage(seconds, between_processes=4 * pace, between_servers=7 * pace),
        )
        it.heal()
        await rest(it, patience)
        ledger = await settle(it, load.intent, nemesis.happened)
        report_lines = report.lines(ledger, nemesis.happened, fallen=it.fallen, intent=load.intent)
        return Run(ledger, nemesis.happened, "\n".join((f"seed {seed}, {seconds:.0f} s", *report_lines)))


async def rest(it: Spread, patience: float) -> None:
    """Wait until nothing is open. What still is, when patience ends, the ledger shows."""
    for clock in work.clocks:
        await it.house.client.schedules.disable(clock.ref)
    try:
        await it.house.until(OPEN, seconds=patience)
    except TimeoutError:
        rows = await it.house.rows(
            "select status, count(*) from execution where finished_at is null group by 1"
        )
        it.fallen.append(f"still open after {patience:.0f} s: {[tuple(row) for row in rows]}")
