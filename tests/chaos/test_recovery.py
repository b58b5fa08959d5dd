"""Every outage that a machine room has, one after the other, under load and without help. All submitted work is done,
with the right result, within twice the largest threshold. Prints a table. Servers of its own; PENSTOCK_CHAOS_GONE
says for how many seconds the broker is gone (60)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.schema import migrate
from tests.crash.processes import Fleet, Started
from tests.crash.recovery import Recovery, in_thread
from tests.flows import shop
from tests.flows.installation import Installation
from tests.servers.rabbitmq import RabbitMQ
from tests.servers.replicated import ReplicatedPostgres

GONE = float(os.environ.get("PENSTOCK_CHAOS_GONE", "60"))
VHOST = "recovery"
SETTINGS: dict[str, Any] = {
    "heartbeat_interval": 2.0,
    "stale_threshold": 10.0,
    "sweep_interval": 5.0,
    "relay_interval": 2.0,
    "relay_age": 2.0,
    "restage_age": 10.0,
    "poll_interval": 2.0,
    "lease": 10.0,
}
BOUND: float = 2 * max(SETTINGS.values())


async def test_everything_recovers_from_every_outage(
    pair: ReplicatedPostgres, private_rabbitmq: Callable[[], RabbitMQ], tmp_path: Path
) -> None:
    broker = await asyncio.to_thread(private_rabbitmq)
    url, address, log = pair.dsn(), broker.add_vhost(VHOST), tmp_path / "services.log"
    await migrate.upgrade(Settings(database_url=SecretStr(url)))

    async def gone() -> None:
        await asyncio.to_thread(broker.stop)
        await asyncio.sleep(GONE)
        await asyncio.to_thread(broker.start)

    async with Installation(url, address, **SETTINGS) as house:
        await house.apply(*shop.ALL, *shop.STURDY)
        with Fleet(url, address, log, **SETTINGS) as fleet:

            async def replaced(process: Started, start: Callable[[], object]) -> None:
                await asyncio.to_thread(fleet.kill, process)
                start()

            executors = [fleet.executor(), fleet.executor()]
            workers = [fleet.worker(), fleet.worker()]
            run = Recovery(house, fleet, patience=max(240.0, 4 * BOUND))
            for n, process in enumerate(executors, 1):
                await run.through(f"kill -9 of executor {n}", partial(replaced, process, fleet.executor))
            for n, process in enumerate(workers, 1):
                await run.through(f"kill -9 of worker {n}", partial(replaced, process, fleet.worker))
            await run.through("kill -9 of PostgreSQL", lambda: in_thread(pair.kill, pair.start))
            await run.through("kill -9 of RabbitMQ", lambda: in_thread(broker.kill, broker.start))
            await run.through(f"RabbitMQ gone for {GONE:g} s", gone)
            await run.through(
                "RabbitMQ's disk lost", lambda: in_thread(broker.wipe, lambda: broker.add_vhost(VHOST))
            )
            await run.through("PostgreSQL restarted", lambda: in_thread(pair.stop, pair.start))
            await run.through(
                "both down at once", lambda: in_thread(broker.stop, pair.kill, pair.start, broker.start)
            )
            await run.through("PostgreSQL failed over to its standby", lambda: in_thread(pair.fail_over))
            print(f"\n{run.table(BOUND)}")
            assert await run.wrong() == [], log.read_text()[-3000:]
            await house.sound()
    late = [figure for figure in run.figures if figure.left or figure.seconds > BOUND]
    assert not late, f"not done within {BOUND:g} s: {late}"
