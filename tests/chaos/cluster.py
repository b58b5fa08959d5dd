"""An installation spread over machines: servers of its own, and processes that reach them through proxies."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

import httpx
from pydantic import SecretStr

from penstock.service.http_addresses import trusted
from penstock.settings import Settings
from penstock.store import migrate
from tests.chaos import work
from tests.chaos.answers import Answers
from tests.chaos.disk import Disk
from tests.chaos.proxy import Proxy
from tests.crash.processes import COMMAND_LINE, ROOT, Fleet, Started
from tests.flows.installation import Installation
from tests.kit import lock_order
from tests.kit.hostile_proxy import HostileProxy
from tests.servers import choose
from tests.servers.postgres import FAST, Postgres
from tests.servers.process import free_port
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
    process: Started
    port: int
    """Of /ready."""
    started: float = field(default_factory=time.monotonic)
    leaving: bool = False

    @property
    def old_enough(self) -> bool:
        """It has had the time to begin its work."""
        return time.monotonic() - self.started > 3

    def signal(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)

    async def ready(self) -> bool:
        """Whether it says that it consumes messages."""
        try:
            async with httpx.AsyncClient(verify=trusted()) as client:
                answer = await client.get(f"http://127.0.0.1:{self.port}/ready", timeout=5)
        except httpx.HTTPError:
            return False
        return answer.status_code == 200


@dataclass
class Network:
    """What stands between a machine and the servers, and can be broken. `hostile`: before the link to the broker."""

    links: Mapping[str, Proxy]
    answers: Answers
    hostile: HostileProxy


class Machine:
    """Processes that share a way to the servers: `network`, or none that could be broken."""

    def __init__(self, name: str, fleet: Fleet, network: Network | None, concurrency: int) -> None:
        self.name = name
        self.network = network
        self.replicas: list[Replica] = []
        self._fleet = fleet
        self._concurrency = concurrency
        self._count = 0

    def start(self, role: Role) -> Replica:
        self._count += 1
        name = f"{self.name}-{role}-{self._count}"
        more = ("--module", "tests.chaos.work", "--concurrency", str(self._concurrency))
        port = free_port()
        words = ("--name", name, "--port", str(port), *(more if role == "worker" else ()))
        self.replicas.append(Replica(self, role, name, self._fleet.start(role, *words), port))
        return self.replicas[-1]

    def replace(self, replica: Replica) -> Replica:
        """Start another one in its place. It has ended, or is about to."""
        self.replicas.remove(replica)
        return self.start(replica.role)

    def end(self, replica: Replica) -> None:
        """kill -9, and nobody in its place."""
        replica.leaving = True
        if replica.process.poll() is None:
            self._fleet.kill(replica.process)

    def kill(self, replica: Replica) -> None:
        """kill -9, and another one in its place."""
        self.end(replica)
        self.replace(replica)


@dataclass
class Cluster:
    postgres: Postgres
    rabbitmq: RabbitMQ
    machines: list[Machine]
    disk: Disk | None
    house: Installation
    starts: Path
    """Where work that must run at most once writes down that it began."""
    calls: Path
    """Where steps of durable functions write down that they were called."""
    killed: list[tuple[str, float]] = field(default_factory=list)
    """Workers that were killed, and when; seconds since the epoch."""
    fallen: list[str] = field(default_factory=list)
    """What ended without being asked to."""

    def replicas(self, role: Role | None = None) -> Iterator[Replica]:
        for machine in self.machines:
            yield from (r for r in machine.replicas if role is None or r.role == role)

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

    async def keep(self) -> None:
        """Start again what ends by itself, as whatever runs services in production does."""
        while True:
            for replica in list(self.replicas()):
                if not replica.leaving and replica.process.poll() is not None:
                    self.fallen.append(f"{replica.name} (exit {replica.process.returncode})")
                    replica.leaving = True
                    replica.machine.replace(replica)
            await asyncio.sleep(0.5)

    async def unready(self, patience: float) -> list[str]:
        """Who still does not consume messages so many seconds from now."""
        until = time.monotonic() + patience
        left = list(self.replicas())
        while left and time.monotonic() < until:
            answers = await asyncio.gather(*(replica.ready() for replica in left))
            left = [replica for replica, ready in zip(left, answers, strict=True) if not ready]
            await asyncio.sleep(0.2)
        return [replica.name for replica in left]

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
        made = Cluster(postgres, rabbitmq, machines, disk, house, starts, calls)
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
    """The same address by way of a proxy."""
    if port is None:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{port}"))
