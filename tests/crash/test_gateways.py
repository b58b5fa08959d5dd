"""Workers behind gateways, while both are killed. A long form: PENSTOCK_TEST_GATEWAY_KILLS=200."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from pathlib import Path

from penstock.operate.access import create_token
from penstock.service.embedded.cluster import free_port
from tests.crash import noted_runs
from tests.crash.processes import Fleet, Started
from tests.crash.test_assigned_work import all_done, runs, start
from tests.flows.installation import Installation

KILLS = int(os.environ.get("PENSTOCK_TEST_GATEWAY_KILLS", "8"))
EACH = 25
"""Executions for each kill."""
GATEWAYS, WORKERS = 2, 3
WAITING = "select from permit where claim is not null having count(distinct worker) >= $1"


async def test_killed_gateways_and_workers_lose_nothing(
    house: Installation, database: str, broker: str | None, tmp_path: Path
) -> None:
    """Work is assigned to takes, lost with workers and gateways, and sent again. All of it completes, and no attempt begins
    twice."""
    chance, notes, log = random.Random(KILLS), tmp_path / "runs", tmp_path / "services.log"
    notes.touch()
    await house.apply(noted_runs.run)
    _, token = await create_token(house.session, "workers", ["work"], by="test")
    ports = [free_port() for _ in range(GATEWAYS)]
    servers = ",".join(f"http://127.0.0.1:{port}" for port in ports)
    with Fleet(database, broker, log, token=token) as fleet:

        def gateway(port: int) -> Started:
            return fleet.start("gateway", "--port", str(port), "--health-port", "0")

        def worker() -> Started:
            module = ("--module", "tests.crash.noted_runs")
            return fleet.start("worker", "--server", servers, *module, "--concurrency", "4")

        fleet.executor()
        gateways = {port: gateway(port) for port in ports}
        workers = [worker() for _ in range(WORKERS)]
        await house.until(WAITING, WORKERS, seconds=90)
        for kill in range(KILLS):
            starting = asyncio.create_task(start(house, notes, range(kill * EACH, (kill + 1) * EACH)))
            await asyncio.sleep(chance.uniform(0.0, 0.3))
            if chance.random() < 0.5:
                port = chance.choice(ports)
                fleet.kill(gateways[port])
                gateways[port] = gateway(port)
            else:
                place = chance.randrange(WORKERS)
                fleet.kill(workers[place])
                workers[place] = worker()
            await starting
            await asyncio.sleep(chance.uniform(0.2, 1.0))
        await all_done(house, KILLS * EACH)
    attempts = Counter((n, attempt) for n, attempt, _ in runs(notes))
    assert {n for n, _ in attempts} == set(range(KILLS * EACH))
    assert max(attempts.values()) == 1, "an attempt ran twice"
