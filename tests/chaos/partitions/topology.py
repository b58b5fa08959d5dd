"""Three RabbitMQ nodes, a PostgreSQL with a synchronous standby behind PgBouncer, executors, workers and a client: each with
ways of its own to all that it speaks to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.schema import migrate
from tests.chaos import work
from tests.chaos.machines import Machine, Role, Spread
from tests.chaos.partitions.ways import Ways, link
from tests.crash.processes import Fleet
from tests.flows.installation import Installation
from tests.kit import lock_order
from tests.servers import choose
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import FAST
from tests.servers.rabbitmq_cluster import NODES, RabbitMQCluster
from tests.servers.replicated import ReplicatedPostgres

VHOST = "partitions"
DATABASE = "postgres"
ROLES: tuple[Role, ...] = ("executor", "executor", "worker", "worker")
CLIENT, POOLER, PRIMARY, STANDBY = "client", "PgBouncer", "primary", "standby"
BROKERS = tuple(f"rabbit {number}" for number in range(1, NODES + 1))
PARTIES = (*(f"{role} {ROLES[: n + 1].count(role)}" for n, role in enumerate(ROLES)), CLIENT)
CONCURRENCY = 50


@dataclass(kw_only=True)
class Topology(Spread):
    ways: Ways
    postgres: ReplicatedPostgres
    pooler: PgBouncer
    rabbitmq: RabbitMQCluster

    def logged(self, words: str) -> int:
        return self.postgres.logged(words)

    @property
    def to_primary(self) -> str:
        """The link from PgBouncer to the primary of now."""
        return link(POOLER, f"port {self.postgres.primary_port}")

    def lead_to_primary(self) -> None:
        """PgBouncer leads to the primary of now."""
        self.pooler.lead_to(_pooled(self.ways, self.postgres), DATABASE)


def _pooled(ways: Ways, postgres: ReplicatedPostgres) -> str:
    port = postgres.primary_port
    return _by(postgres.primary_dsn(), ways.through(link(POOLER, f"port {port}"), port))


@asynccontextmanager
async def topology(log: Path, settings: Mapping[str, Any]) -> AsyncIterator[Topology]:
    async with AsyncExitStack() as stack:
        ways = Ways()
        stack.callback(ways.close)
        postgres, rabbitmq = await asyncio.gather(
            asyncio.to_thread(_postgres, ways), asyncio.to_thread(_rabbitmq, ways)
        )
        stack.callback(postgres.close)
        stack.callback(rabbitmq.close)
        await asyncio.to_thread(rabbitmq.add_vhost, VHOST)
        await migrate.upgrade(Settings(database_url=SecretStr(postgres.primary_dsn(DATABASE))))
        pooler = choose.private_pgbouncer(_pooled(ways, postgres))
        stack.callback(pooler.close)

        def addresses(party: str) -> tuple[str, str]:
            """Its ways to PgBouncer and to the nodes of RabbitMQ."""
            database = _by(pooler.dsn(DATABASE), ways.through(link(party, POOLER), pooler.port))
            nodes = zip(BROKERS, rabbitmq.nodes, strict=True)
            ports = [ways.through(link(party, name), node.port) for name, node in nodes]
            return database, rabbitmq.url(VHOST, ports)

        house = Installation(*addresses(CLIENT), **settings, database_pooler=True)
        await stack.enter_async_context(house)
        await house.apply(*work.ALL)
        await lock_order.watch(house.session)
        starts, calls = log.with_name("starts"), log.with_name("calls")
        starts.touch()
        calls.touch()
        machines = [
            _machine(stack, party, role, log, addresses, settings)
            for party, role in zip(PARTIES, ROLES, strict=False)
        ]
        topology = Topology(
            machines=machines,
            house=house,
            starts=starts,
            calls=calls,
            ways=ways,
            postgres=postgres,
            pooler=pooler,
            rabbitmq=rabbitmq,
        )
        keeper = asyncio.create_task(topology.keep())
        try:
            yield topology
        finally:
            keeper.cancel()


def _machine(
    stack: AsyncExitStack,
    party: str,
    role: Role,
    log: Path,
    addresses: Callable[[str], tuple[str, str]],
    settings: Mapping[str, Any],
) -> Machine:
    """With one process."""
    fleet = Fleet(*addresses(party), log, **settings, database_pooler=True)
    fleet.environment |= {work.STARTS: str(log.with_name("starts")), work.CALLS: str(log.with_name("calls"))}
    stack.enter_context(fleet)
    machine = Machine(party.replace(" ", "-"), fleet, None, CONCURRENCY)
    machine.start(role)
    return machine


def _postgres(ways: Ways) -> ReplicatedPostgres:
    return ReplicatedPostgres(
        {**FAST, "max_connections": "100"}, partial(ways.through, link(PRIMARY, STANDBY))
    )


def _rabbitmq(ways: Ways) -> RabbitMQCluster:
    def way(one: int, other: int, port: int) -> int:
        """Either of two may be the one that connects."""
        return ways.through(link(*sorted((BROKERS[one], BROKERS[other]))), port)

    return choose.rabbitmq_cluster(way)


def _by(url: str, port: int) -> str:
    """Return the same address by way of a proxy."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{port}"))
