"""One run: load, and one partition after the other until every two were parted; then peace, then the ledger."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos import report
from tests.chaos.ledger import Ledger, settle
from tests.chaos.load import EACH_SECOND, LINES, TO_EACH_LINE, Load
from tests.chaos.nemesis import Happened
from tests.chaos.partitions import table
from tests.chaos.partitions.partings import Parting, partings
from tests.chaos.partitions.topology import Topology, topology
from tests.chaos.partitions.watch import Parted, watch
from tests.chaos.partitions.ways import How
from tests.chaos.run import DEFAULT, rest

LASTS = (2.0, 15.0)
"""Seconds of a partition, from and to."""
BETWEEN = 3.0
"""Seconds from when all moves again to the next."""
IN_LINES = LINES * TO_EACH_LINE
"""A second, however much there is beside."""
WHOLE = sum(count for _, count in EACH_SECOND)
PATIENCE = 300.0
"""Seconds until everything must have come to rest, once nothing is parted any more."""
HOWS: tuple[How, ...] = ("silent", "reset", "silent", "reset", "one way")


@dataclass
class Run:
    ledger: Ledger
    parted: Sequence[Parted]
    broken: list[str]
    """Promises that were not kept."""
    text: str


async def partitions(
    log: Path,
    *,
    seconds: float,
    rate: float,
    seed: int,
    only: Sequence[str] = (),
    lasts: tuple[float, float] = LASTS,
    hows: Sequence[How] = HOWS,
    tell: Callable[[str], None] = lambda _: None,
) -> Run:
    """Part for at least so many seconds, and until each partition has happened once. `only`: those with one of these words
    in their names. `lasts`: the least and most seconds of a partition. Where that is less than a process may be silent, no
    worker may lose its work."""
    async with topology(log, DEFAULT) as it:
        await it.until_started()
        load = Load(it.house.client, max(0.0, rate - IN_LINES) / WHOLE)
        loading = asyncio.create_task(load.run())
        selected = [
            parting for parting in partings() if not only or any(words in parting.name for words in only)
        ]
        happened = [
            done async for done in _one_after_the_other(it, selected, seconds, lasts, hows, seed, tell)
        ]
        load.stop()
        await loading
        await rest(it, PATIENCE)
        ledger = await settle(it, load.intent, [_happened(parting) for parting in happened])
        broken = [words for parting in happened for words in parting.broken] + it.fallen
        faults = ledger.faults_found
        if (
            not ledger.for_nothing
        ):  # what a worker claims as it comes back, before it hears that it was taken for dead
            faults.pop("unknown to their worker", None)
        broken += [f"{name}: {count}" for name, count in faults.items()]
        report_lines = report.lines(ledger, [], fallen=it.fallen, intent=load.intent)
        text = "\n".join((f"seed {seed}", *table.lines(happened), "", *report_lines))
        return Run(ledger, happened, broken, text)


async def _one_after_the_other(
    it: Topology,
    chosen: Sequence[Parting],
    seconds: float,
    lasts: tuple[float, float],
    hows: Sequence[How],
    seed: int,
    tell: Callable[[str], None],
) -> AsyncIterator[Parted]:
    """All of them in an order of chance, and again until the time is over."""
    draw, until = random.Random(seed), time.monotonic() + seconds
    await asyncio.sleep(BETWEEN)
    for turn in itertools.count():
        for parting in draw.sample(chosen, len(chosen)):
            if turn and time.monotonic() > until:
                return
            how, apart = draw.choice(hows), draw.uniform(*lasts)
            began = time.time()
            connections = await parting.act(it, how, apart)
            partition = await watch(it, Parted(parting.name, how, connections, began, time.time()))
            tell(table.line(partition))
            yield partition
            await asyncio.sleep(BETWEEN)


def _happened(one: Parted) -> Happened:
    spares = one.healed - one.began < DEFAULT["stale_threshold"]
    return Happened(one.name, one.began, one.healed, one.how, spares)
