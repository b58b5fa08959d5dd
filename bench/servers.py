"""A PostgreSQL and a RabbitMQ for one run: on free ports, in folders of their own, gone afterwards.

Both keep their default, durable settings. PostgreSQL also notes when each transaction was committed
(track_commit_timestamp), from which the recorded latencies come. Their folders are under /var/tmp, since /tmp
may be memory, where durability costs nothing.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import asyncpg

from penstock.service.embedded import account, binaries, postmaster
from penstock.service.embedded.cluster import Address, Cluster, environment, free_port, new_password
from tests.servers import choose, rabbitmq, reaper
from tests.servers.process import Process, new_folder, remove

DISK = "/var/tmp"
MEMORY = "/dev/shm"
READY = 60.0
"""Seconds for PostgreSQL to answer."""


class Postgres:
    """A private PostgreSQL with nothing but its own defaults, commit timestamps, and what a measurement needs."""

    def __init__(self, **settings: str) -> None:
        self.folder = new_folder("bench-postgres")
        data, log = self.folder / "data", self.folder / "log"
        owner = account.for_server(data)
        cluster = Cluster(data, binaries.reachable(native_or_wheel(), owner, self.folder), owner)
        self._address = Address(None, free_port(), new_password())
        cluster.create(self._address.password)
        command = cluster.command(self._address, {"track_commit_timestamp": "on", **settings})
        self._process = Process(command, log=log, env=environment(), spawn=owner.spawn)
        self.pid = self._process.pid
        postmaster.wait_until_ready(data, log, pid=self.pid, alive=self._process.alive, seconds=READY)

    def url(self, database: str = "postgres") -> str:
        return self._address.dsn(database)

    async def execute(self, *statements: str) -> None:
        connection = await asyncpg.connect(self.url())
        for statement in statements:
            await connection.execute(statement)
        await connection.close()

    async def version(self) -> str:
        connection = await asyncpg.connect(self.url())
        version: str = await connection.fetchval("show server_version")
        await connection.close()
        return version.split()[0]

    def close(self) -> None:
        self._process.end(signal.SIGQUIT, 30)
        remove(self.folder)


def native_or_wheel() -> binaries.Binaries:
    """Return the newest PostgreSQL of this machine, as most users have it, or else that of the wheel."""
    on_path = shutil.which("postgres")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next(filter(None, map(binaries.inspect, folders)), None) or binaries.find()


def start_rabbitmq() -> rabbitmq.RabbitMQ:
    """Start the RabbitMQ of this machine. Without one, start a container, or the RabbitMQ that the tests install."""
    if rabbitmq.find_script() is None:
        return choose.private_rabbitmq()
    # The management plugin is there to make vhosts; its statistics would be a cost that nobody asked for.
    return rabbitmq.NativeRabbitMQ({"management_agent.disable_metrics_collector": "true"})


@dataclass(frozen=True)
class Servers:
    folder: Path
    """For the logs of everything that is started."""
    memory: Path
    """For what must not touch a disk."""
    postgres: Postgres
    rabbitmq: rabbitmq.RabbitMQ | None


@asynccontextmanager
async def started(*, broker: bool, **settings: str) -> AsyncIterator[Servers]:
    """Both servers (RabbitMQ only if `broker`), until the end of the block. `settings`: of PostgreSQL, beside its defaults.

    Raises NoServer, saying what to type, where one is not to be had.
    """
    tempfile.tempdir = DISK  # where `new_folder` makes them
    folder = new_folder("bench")
    memory = Path(tempfile.mkdtemp(prefix=f"{reaper.PREFIX}bench-", dir=MEMORY))
    reaper.watch_folder(memory)
    running: list[Postgres | rabbitmq.RabbitMQ] = []
    try:
        postgres = await asyncio.to_thread(partial(Postgres, **settings))
        running.append(postgres)
        carrier = await asyncio.to_thread(start_rabbitmq) if broker else None
        running += [carrier] if carrier else []
        yield Servers(folder, memory, postgres, carrier)
    finally:
        for server in running:
            await asyncio.to_thread(server.close)
        remove(folder)
        remove(memory)
