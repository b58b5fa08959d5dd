"""Processes on machines: started, replaced when they end, asked whether they are ready."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import httpx

from penstock.service.http_addresses import trusted
from tests.chaos.answers import Answers
from tests.chaos.proxy import Proxy
from tests.crash.processes import Fleet, Started
from tests.flows.installation import Installation
from tests.kit.hostile_proxy import HostileProxy
from tests.servers.process import free_port

Role = Literal["executor", "worker", "gateway"]


@dataclass
class Replica:
    """A process of a machine. `leaving`: it is ended on purpose."""

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
        """Return true if it says that it consumes messages."""
        try:
            async with httpx.AsyncClient(verify=trusted()) as client:
                answer = await client.get(f"http://127.0.0.1:{self.port}/ready", timeout=5)
        except httpx.HTTPError:
            return False
        return answer.status_code == 200


@dataclass
class Network:
    """The links between a machine and what it calls, which can be broken. `answers`: of the servers that they lead to.
    `hostile`: before the link to the broker, if there is one."""

    links: Mapping[str, Proxy]
    answers: Answers
    hostile: HostileProxy | None = None


class Machine:
    """Processes that share a way to the servers: `network`, or none that could be broken. `fronts`: the links that lead to
    the gateway of this machine."""

    def __init__(
        self,
        name: str,
        fleet: Fleet,
        network: Network | None,
        concurrency: int,
        *,
        fronts: Sequence[Proxy] = (),
    ) -> None:
        self.name = name
        self.network = network
        self._fronts = fronts
        self.replicas: list[Replica] = []
        self._fleet = fleet
        self._concurrency = concurrency
        self._count = 0

    def start(self, role: Role) -> Replica:
        self._count += 1
        name = f"{self.name}-{role}-{self._count}"
        port = free_port()
        words = ["--name", name]
        if role == "gateway":
            # The gateway before this one may still drain on its port.
            api_port = free_port()
            words += ["--port", str(api_port), "--health-port", str(port)]
            for front in self._fronts:
                front.lead_to(api_port)
        else:
            words += ["--port", str(port)]
        if role == "worker":
            words += ["--module", "tests.chaos.work", "--concurrency", str(self._concurrency)]
        self.replicas.append(Replica(self, role, name, self._fleet.start(role, *words), port))
        return self.replicas[-1]

    def replace(self, replica: Replica) -> Replica:
        """Start another one in its place. It has ended, or is about to."""
        self.replicas.remove(replica)
        return self.start(replica.role)

    def end(self, replica: Replica) -> None:
        """End it by kill -9, without a replacement."""
        replica.leaving = True
        if replica.process.poll() is None:
            self._fleet.kill(replica.process)

    def kill(self, replica: Replica) -> None:
        """kill -9, and another one in its place."""
        self.end(replica)
        self.replace(replica)


@dataclass(kw_only=True)
class Spread:
    """An installation that is spread over machines."""

    machines: list[Machine]
    house: Installation
    starts: Path
    """Where work that must run at most once writes down that it began."""
    calls: Path
    """Where steps of durable functions write down that they were called."""
    killed: list[tuple[str, float]] = field(default_factory=list)
    """Workers that were killed, and when; seconds since the epoch."""
    fallen: list[str] = field(default_factory=list)
    """What ended without being asked to."""

    def logged(self, words: str) -> int:
        """Count the lines of PostgreSQL's log with these words, as far as it can be read."""
        return 0

    def replicas(self, role: Role | None = None) -> Iterator[Replica]:
        for machine in self.machines:
            yield from (r for r in machine.replicas if role is None or r.role == role)

    async def until_started(self) -> None:
        """Wait until every executor and worker has a row. A gateway has none."""
        count = len([replica for replica in self.replicas() if replica.role != "gateway"])
        await self.house.until("select 1 from process having count(*) = $1", count, seconds=120)

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
        """Return the replicas that still do not consume messages so many seconds from now."""
        until = time.monotonic() + patience
        waiting = list(self.replicas())
        while waiting and time.monotonic() < until:
            answers = await asyncio.gather(*(replica.ready() for replica in waiting))
            waiting = [replica for replica, ready in zip(waiting, answers, strict=True) if not ready]
            await asyncio.sleep(0.2)
        return [replica.name for replica in waiting]
