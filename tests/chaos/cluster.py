"""An installation spread over machines: servers of its own, and processes that reach them through proxies."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.schema import migrate
from tests.chaos import work
from tests.chaos.answers import Answers
from tests.chaos.disk import Disk
from tests.chaos.machines import Machine, Network, Role, Spread
from tests.chaos.proxy import Proxy
from tests.crash.processes import COMMAND_LINE, ROOT, Fleet
from tests.flows.installation import Installation
from tests.kit import lock_order
from tests.kit.hostile_proxy import HostileProxy
from tests.servers import choose
from tests.servers.postgres import FAST, NativePostgres, Postgres
from tests.servers.rabbitmq import RabbitMQ

VHOST = "chaos"
CLOCKS = "0,7200,-7200"
"""Seconds by which the clock of a replica is wrong, one after the other."""


@dataclass(kw_only=True)
class Cluster(Spread):
    postgres: Postgres
    rabbitmq: RabbitMQ
    disk: Disk | None

    def logged(self, words: str) -> int:
        return self.postgres.logged(words) if isinstance(self.postgres, NativePostgres) else 0

    @property
    def networks(self) -> list[Network]:
        return [machine.network for machine in self.machines if machine.network is not None]

    def links(self, server: str | None = None) -> list[Proxy]:
        return [
            link
            for network in self.networks
            for name, link in network.links.items()
            if server is None or name == server
        ]

    def heal(self) -> None:
        """Whatever was broken works again."""
        for link in self.links():
            link.heal()
        for network in self.networks:
            network.hostile.heal()
        for replica in self.replicas():
            replica.signal(signal.SIGCONT)
        if self.disk is not None:
            self.disk.empty()


@asynccontextmanager
async def cluster(log: Path, settings: Mapping[str, Any], *, disk_mb: int = 400) -> AsyncIterator[Cluster]:
    """Two executors and three workers on three machines: one beside the servers, one behind links that can be broken,
    one behind such links with a clock that jumps."""
    async with AsyncExitStack() as stack:
        postgres = await asyncio.to_thread(choose.private_postgres, {**FAST, "max_connections": "250"})
        stack.callback(postgres.close)
        disk = stack.enter_context(Disk.small(postgres, disk_mb))
        rabbitmq = await asyncio.to_thread(choose.private_rabbitmq)
        stack.callback(rabbitmq.close)
        rabbitmq.add_vhost(VHOST)
        database, broker = postgres.dsn("postgres"), rabbitmq.url(VHOST)
        await migrate.upgrade(Settings(database_url=SecretStr(database)))
        house = await stack.enter_async_context(Installation(database, broker, **settings))
        await house.apply(*work.ALL)
        await lock_order.watch(house.session)
        if disk is not None:
            await disk.take_over(house.session)

        async def machine(
            name: str, *roles: Role, far: bool, program: Sequence[str] = COMMAND_LINE
        ) -> Machine:
            network = await _network(stack, database, broker) if far else None
            fleet = Fleet(
                _through(database, network.links["postgres"].port if network else None),
                _through(broker, network.hostile.port if network else None),
                log,
                program=program,
                **settings,
            )
            fleet.environment |= {work.STARTS: str(starts), work.CALLS: str(calls)}
            stack.enter_context(fleet)
            made = Machine(name, fleet, network, concurrency=100)
            for role in roles:
                made.start(role)
            return made

        starts, calls = log.with_name("starts"), log.with_name("calls")
        starts.touch()
        calls.touch()
        clock = (str(ROOT / "tests/flows/wrong_clock.py"), CLOCKS)
        machines = [
            await machine("near", "executor", "worker", far=False),
            await machine("far", "worker", far=True),
            await machine("odd", "executor", "worker", far=True, program=clock),
        ]
        made = Cluster(
            machines=machines,
            postgres=postgres,
            rabbitmq=rabbitmq,
            disk=disk,
            house=house,
            starts=starts,
            calls=calls,
        )
        keeper = asyncio.create_task(made.keep())
        try:
            yield made
        finally:
            keeper.cancel()
            made.heal()


async def _network(stack: AsyncExitStack, database: str, broker: str) -> Network:
    answers = Answers()
    postgres = await stack.enter_async_context(Proxy(urlsplit(database).port or 0, answers.watch))
    rabbitmq = await stack.enter_async_context(Proxy(urlsplit(broker).port or 0))
    hostile = stack.enter_context(HostileProxy(rabbitmq.port))
    return Network({"postgres": postgres, "rabbitmq": rabbitmq}, answers, hostile)


def _through(url: str, port: int | None) -> str:
    """Return the same address by way of a proxy."""
    if port is None:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{port}"))
