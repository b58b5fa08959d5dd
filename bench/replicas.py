"""An installation on RabbitMQ whose executors and workers are processes of their own, at default settings: to be killed, or
replaced."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from bench.servers import started
from penstock import Client, Definitions, Settings
from penstock.operate.apply import register
from penstock.store.schema import migrate
from tests.crash.processes import python_path
from tests.servers import reaper

DATABASE = "replicas"
PATIENCE = 120.0
"""Seconds."""
LOOK = 0.02
LIVING = "select count(*)::integer as count from process where name = any($1::text[]) and state = 'active'"


@dataclass
class Fleet:
    """Executors and workers by name, ended by their ids. `module`: where the workers' actions are."""

    environment: dict[str, str]
    log: Path
    module: str
    release: Path | None = None
    """A copy of the code to run, in place of this."""
    servers: Mapping[str, int] = field(default_factory=dict)
    """The processes at the roots of PostgreSQL and RabbitMQ, by their names."""
    alive: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def start(self, role: str, **variables: str) -> str:
        """Start a process, and return its name. `variables`: of its environment."""
        name = f"{role}-{next(self._numbers)}"
        arguments = ("--module", self.module) if role == "worker" else ()
        code = (
            {"PYTHONPATH": os.pathsep.join((python_path(self.release), str(Path.cwd())))}
            if self.release
            else {}
        )
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "penstock", role, *arguments],
                env={**self.environment, **code, **variables, "PENSTOCK_NAME": name},
                stdout=log,
                stderr=log,
            )
        reaper.watch_process(process.pid)
        self.alive[name] = process
        return name

    def kill(self, name: str) -> None:
        """Kill it, and start another."""
        process = self.alive.pop(name)
        process.kill()
        process.wait()
        self.start(role_of(name))

    async def leave(self, name: str) -> None:
        """Ask it to end, and wait until it has. Raises CalledProcessError if it does not end well."""
        process = self.alive.pop(name)
        process.send_signal(signal.SIGTERM)
        if status := await asyncio.to_thread(process.wait, PATIENCE):
            raise subprocess.CalledProcessError(status, name)

    async def command(self, *arguments: str) -> list[str]:
        """Return the lines that `penstock` prints. Raises CalledProcessError if it does not end well."""
        run = partial(subprocess.run, check=True, stdout=subprocess.PIPE, text=True, env=self.environment)
        done = await asyncio.to_thread(run, [sys.executable, "-m", "penstock", *arguments])
        return str(done.stdout).splitlines()

    def of(self, role: str) -> list[str]:
        return [name for name in self.alive if role_of(name) == role]

    async def all_there(self, client: Client) -> None:
        """Wait until every one of them is registered."""
        async with asyncio.timeout(PATIENCE):
            while (await client.session.fetch(LIVING, list(self.alive)))[0]["count"] < len(self.alive):
                await asyncio.sleep(LOOK)

    def close(self) -> None:
        for process in self.alive.values():
            process.kill()
            process.wait()


def role_of(name: str) -> str:
    return name.partition("-")[0]


@asynccontextmanager
async def installation(
    module: str, definitions: Sequence[Any], of_each: int, **of_postgres: str
) -> AsyncIterator[tuple[Client, Fleet]]:
    """Run executors and workers on servers of their own. Yields a client and the fleet. `of_postgres`: settings of PostgreSQL."""
    async with started(broker=True, **of_postgres) as servers:
        assert servers.rabbitmq is not None
        await servers.postgres.execute(f"create database {DATABASE}")
        database, broker = servers.postgres.url(DATABASE), servers.rabbitmq.add_vhost(DATABASE)
        settings = Settings(database_url=SecretStr(database), broker_url=SecretStr(broker))
        await migrate.upgrade(settings)
        outside = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        variables = {
            "PENSTOCK_DATABASE_URL": database,
            "PENSTOCK_BROKER_URL": broker,
            "PENSTOCK_LOG_LEVEL": "warning",
        }
        roots = {"postgres": servers.postgres.pid, "rabbitmq": servers.rabbitmq.pid}
        fleet = Fleet({**outside, **variables}, servers.folder / "services.log", module, servers=roots)
        try:
            async with Client.connect(settings) as client:
                await register(client.session, Definitions(list(definitions)))
                for role in ("executor", "worker") * of_each:
                    fleet.start(role)
                yield client, fleet
        finally:
            fleet.close()
