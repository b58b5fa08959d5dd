"""An installation spread over machines: servers of its own, and processes that reach them through proxies."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store import migrate
from tests.chaos import work
from tests.chaos.disk import Disk
from tests.chaos.proxy import Proxy
from tests.crash.processes import COMMAND_LINE, ROOT, Fleet
from tests.flows.installation import Installation
from tests.servers import choose
from tests.servers.postgres import FAST, Postgres
from tests.servers.rabbitmq import RabbitMQ

Role = Literal["executor", "worker"]
VHOST = "chaos"
CLOCKS = "0,7200,-7200"
"""Seconds by which the clock of a replica is wrong, one after the other."""


@dataclass
class Replica:
    """A process of a machine. `leaving`: somebody ends it on purpose."""

    machine: Machine
    role: Role
    name: str
    process: subprocess.Popen[bytes]
    started: float = field(default_factory=time.monotonic)
    leaving: bool = False

    @property
    def old_enough(self) -> bool:
        """It has had the time to begin its work."""
        return time.monotonic() - self.started > 3

    def signal(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)


class Machine:
    """Processes that share a way to the servers."""

    def __init__(self, name: str, fleet: Fleet, links: Mapping[str, Proxy], concurrency: int) -> None:
        self.name = name
        self.links = links
        self.replicas: list[Replica] = []
        self._fleet = fleet
        self._concurrency = concurrency
        self._count = 0

    def start(self, role: Role) -> Replica:
        self._count += 1
        name = f"{self.name}-{role}-{self._count}"
        more = ("--module", "tests.chaos.work", "--concurrency", str(self._concurrency))
        process = self._fleet.start(role, "--name", name, *(more if role == "worker" else ()))
        self.replicas.append(Replica(self, role, name, process))
        return self.replicas[-1]

    def replace(self, replica: Replica) -> Replica:
        """Start another one in its place. It has ended, or is about to."""
        self.replicas.remove(replica)
        return self.start(replica.role)

    def kill(self, replica: Replica) -> None:
        """kill -9, and another one in its place."""
        replica.leaving = True
        if replica.process.poll() is None:
            self._fleet.kill(replica.process)
        self.replace(replica)


@dataclass
class Cluster:
    postgres: Postgres
    rabbitmq: RabbitMQ
    machines: list[Machine]
    disk: Disk | None
    house: Installation
    killed: list[tuple[str, float]] = field(default_factory=list)
    """Workers that were killed, and when; seconds since the epoch."""
    fallen: list[str] = field(default_factory=list)
    """What ended without being asked to."""

    def replicas(self, role: Role | None = None) -> Iterator[Replica]:
        for machine in self.machines:
            yield from (r for r in machine.replicas if role is None or r.role == role)

    def links(self, server: str | None = None) -> list[Proxy]:
        return [
            link
            for machine in self.machines
            for name, link in machine.links.items()
            if server is None or name == server
        ]

    async def keep(self) -> None:
        """Start again what ends by itself, as whatever runs services in production does."""
        while True:
            for replica in list(self.replicas()):
                if not replica.leaving and replica.process.poll() is not None:
                    self.fallen.append(f"{replica.name} (exit {replica.process.returncode})")
                    replica.leaving = True
                    replica.machine.replace(replica)
            await asyncio.sleep(0.5)

    def heal(self) -> None:
        """Whatever was broken works again."""
        for link in self.links():
            link.heal()
        for replica in self.replicas():
            replica.signal(signal.SIGCONT)
        if self.disk is not None:
            self.disk.empty()


@asynccontextmanager
async def cluster(log: Path, settings: Mapping[str, Any], *, disk_mb: int = 400) -> AsyncIterator[Cluster]:
    """Two executors and three workers on three machines: one beside the servers, one behind links that can be broken,
    one behind such links whose clock jumps."""
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
        if disk is not None:
            await disk.take_over(house.session)

        async def machine(
            name: str, *roles: Role, far: bool, program: Sequence[str] = COMMAND_LINE
        ) -> Machine:
            links: dict[str, Proxy] = {}
            if far:
                for server, url in (("postgres", database), ("rabbitmq", broker)):
                    links[server] = await stack.enter_async_context(Proxy(urlsplit(url).port or 0))
            fleet = Fleet(
                _through(database, links.get("postgres")),
                _through(broker, links.get("rabbitmq")),
                log,
                program=program,
                **settings,
            )
            stack.enter_context(fleet)
            made = Machine(name, fleet, links, concurrency=100)
            for role in roles:
                made.start(role)
            return made

        clock = (str(ROOT / "tests/flows/wrong_clock.py"), CLOCKS)
        machines = [
            await machine("near", "executor", "worker", far=False),
            await machine("far", "worker", far=True),
            await machine("odd", "executor", "worker", far=True, program=clock),
        ]
        made = Cluster(postgres, rabbitmq, machines, disk, house)
        keeper = asyncio.create_task(made.keep())
        try:
            yield made
        finally:
            keeper.cancel()
            made.heal()


def _through(url: str, link: Proxy | None) -> str:
    """The same address by way of a proxy."""
    if link is None:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{link.port}"))
