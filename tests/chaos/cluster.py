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

from penstock.operate.access import create_token
from penstock.settings import Settings
from penstock.store.schema import migrate
from tests.chaos import work
from tests.chaos.answers import CALLS, STATEMENTS, Answers, Calls, Statements
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
NODE_WORKER = ROOT / "tests/chaos/work.mjs"
"""The program of a worker on Node."""
LIBRARY = "CHAOS_LIBRARY"
"""The variable that names the folder of the built library for Node."""


@dataclass(kw_only=True)
class Cluster(Spread):
    postgres: Postgres
    rabbitmq: RabbitMQ
    disk: Disk | None

    def logged(self, words: str) -> int:
        return self.postgres.logged(words) if isinstance(self.postgres, NativePostgres) else 0

    @property
    def networks(self) -> list[Network]:
        networks = {id(machine.network): machine.network for machine in self.machines}
        return [network for network in networks.values() if network is not None]

    @property
    def hostile(self) -> list[HostileProxy]:
        return [network.hostile for network in self.networks if network.hostile is not None]

    def links(self, server: str | None = None) -> list[Proxy]:
        return [
            link
            for network in self.networks
            for name, link in network.links.items()
            if server is None or name.startswith(server)
        ]

    def heal(self) -> None:
        """Repair all broken parts."""
        for link in self.links():
            link.heal()
        for hostile in self.hostile:
            hostile.heal()
        for replica in self.replicas():
            replica.signal(signal.SIGCONT)
        if self.disk is not None:
            self.disk.empty()


@asynccontextmanager
async def cluster(
    log: Path, settings: Mapping[str, Any], *, disk_mb: int = 400, library: Path | None = None
) -> AsyncIterator[Cluster]:
    """Two executors, two gateways and four workers on machines. One machine is beside the servers, one behind links that can
    be broken, one behind such links with a clock that jumps. At a site behind links to the gateways are half of the
    workers: they have a token alone. One of them runs on Node if `library` is a built library for Node."""
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

        def machine(name: str, fleet: Fleet, network: Network | None, *roles: Role) -> Machine:
            fleet.environment |= {work.STARTS: str(starts), work.CALLS: str(calls)}
            stack.enter_context(fleet)
            fronts = [link for at, link in site.links.items() if at.endswith(f" {name}")]
            made = Machine(name, fleet, network, concurrency=100, fronts=fronts)
            for role in roles:
                made.start(role)
            return made

        def behind(network: Network, program: Sequence[str] = COMMAND_LINE) -> Fleet:
            assert network.hostile is not None
            return Fleet(
                _through(database, network.links["postgres"].port),
                _through(broker, network.hostile.port),
                log,
                program=program,
                **settings,
            )

        starts, calls = log.with_name("starts"), log.with_name("calls")
        starts.touch()
        calls.touch()
        _, token = await create_token(house.session, "site", ["work"], by="chaos")
        site = await _site(stack)
        servers = ",".join(f"http://127.0.0.1:{link.port}" for link in site.links.values())
        remote = {**settings, "server": servers, "token": token}
        clock = (str(ROOT / "tests/flows/wrong_clock.py"), CLOCKS)
        far, odd = await _network(stack, database, broker), await _network(stack, database, broker)
        machines = [
            machine("near", Fleet(database, broker, log, **settings), None, "executor", "worker", "gateway"),
            machine("far", behind(far), far, "gateway"),
            machine("odd", behind(odd, clock), odd, "executor", "worker"),
        ]
        if library is None:
            machines.append(machine("site", Fleet("", None, log, **remote), site, "worker", "worker"))
        else:
            machines.append(machine("site", Fleet("", None, log, **remote), site, "worker"))
            node = Fleet("", None, log, interpreter="node", program=[str(NODE_WORKER)], **remote)
            node.environment[LIBRARY] = str(library)
            machines.append(machine("site-node", node, site, "worker"))
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
    answers = Answers(Statements, STATEMENTS)
    postgres = await stack.enter_async_context(Proxy(urlsplit(database).port or 0, answers.watch))
    rabbitmq = await stack.enter_async_context(Proxy(urlsplit(broker).port or 0))
    hostile = stack.enter_context(HostileProxy(rabbitmq.port))
    return Network({"postgres": postgres, "rabbitmq": rabbitmq}, answers, hostile)


async def _site(stack: AsyncExitStack) -> Network:
    """Return the links of a site to the gateways of two machines, which lead nowhere before the gateways are started."""
    answers = Answers(Calls, CALLS)
    links = [await stack.enter_async_context(Proxy(0, answers.watch)) for _ in range(2)]
    return Network({"gateway near": links[0], "gateway far": links[1]}, answers)


def _through(url: str, port: int) -> str:
    """Return the same address by way of a proxy."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{port}"))
