"""kill -9 of workers, again and again, with recoveries that are not capped: each execution completes, and each attempt
is accounted for."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest

from tests.chaos import report
from tests.chaos.cluster import cluster
from tests.chaos.ledger import settle
from tests.chaos.load import Intent
from tests.chaos.nemesis import Happened
from tests.chaos.run import SHORT

EACH = 100
"""Executions for each kill."""


async def test_workers_are_killed_two_hundred_times_over_twenty_thousand_executions(
    seed: int, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kills, draw = int(request.config.getoption("--kills")), random.Random(seed)
    intent, faults = Intent(), []
    async with cluster(tmp_path / "services.log", SHORT) as it:
        await it.until_started()
        for kill in range(kills):
            numbers = range(kill * EACH, (kill + 1) * EACH)
            ids = await it.house.client.start_many("chaos.double", [{"n": n} for n in numbers])
            intent.results |= dict(zip(ids, (2 * n for n in numbers), strict=True))
            # In the midst of that batch or after it; never while all workers are only starting.
            await asyncio.sleep(draw.uniform(0, 0.3))
            while not (grown := [r for r in it.replicas("worker") if r.old_enough]):
                await asyncio.sleep(0.1)
            victim, now = draw.choice(grown), time.time()
            it.killed.append((victim.name, now))
            victim.machine.kill(victim)
            faults.append(Happened("kill -9 a worker", now, now, victim.name, spares=False))
            await asyncio.sleep(draw.uniform(0.5, 1.5))
        await it.house.until(
            "select 1 where not exists (select from execution where finished_at is null)", seconds=120
        )
        ledger = await settle(it, intent, faults)
        lines = report.lines(ledger, faults, fallen=it.fallen, intent=intent)
    text = "\n".join((f"seed {seed}", *lines))
    with capsys.disabled():
        print(f"\n{text}")
    assert not ledger.faults_found, text
    assert ledger.right >= kills * EACH
