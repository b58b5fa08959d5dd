"""Whole servers go away, and another takes over without help. tests/chaos/test_recovery.py does all of it, longer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.schema import migrate
from tests.crash.processes import Fleet
from tests.crash.recovery import Recovery, in_thread
from tests.flows import shop
from tests.flows.installation import Installation
from tests.servers.rabbitmq import RabbitMQ
from tests.servers.replicated import ReplicatedPostgres


async def test_both_servers_are_down_at_once_and_then_the_standby_takes_over(
    pair: ReplicatedPostgres, private_rabbitmq: Callable[[], RabbitMQ], tmp_path: Path
) -> None:
    broker = await asyncio.to_thread(private_rabbitmq)
    url, address = pair.dsn(), broker.add_vhost("recovery")
    await migrate.upgrade(Settings(database_url=SecretStr(url)))
    log = tmp_path / "services.log"
    async with Installation(url, address) as house:
        await house.apply(*shop.ALL, *shop.STURDY)
        with Fleet(url, address, log) as fleet:
            for start in (fleet.executor, fleet.executor, fleet.worker, fleet.worker):
                start()
            run = Recovery(house, fleet, patience=120)
            await run.through(
                "both down", lambda: in_thread(broker.stop, pair.kill, pair.start, broker.start)
            )
            await run.through("failed over", lambda: in_thread(pair.fail_over))
            assert [figure.left for figure in run.figures] == [0, 0], log.read_text()[-3000:]
            assert await run.wrong() == [], log.read_text()[-3000:]
            await house.sound()
