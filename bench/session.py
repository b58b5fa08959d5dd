"""One system, up and running for a while: a fresh database, its processes, its client."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from bench import marks, meters, own, peers, systems
from bench.servers import Servers
from tests.crash.processes import python_path
from tests.servers import reaper
from tests.servers.process import free_port

PATIENCE = 60.0
"""Seconds without any progress after which a system is given up."""
ORDER = 180.0
"""Seconds for the client to carry out one order."""
SETTLE = 0.5
"""Seconds after the last end in which what a system does afterwards still counts as its cost."""

WARM = 200
"""Tasks before anything is measured, in about a second."""


class Stalled(Exception):
    """A system did not do what was asked within its time, or one of its processes ended."""


@dataclass
class Session:
    """The servers and the system that the works use. Indexes of no-ops rise through the whole session."""

    system: systems.System
    environment: dict[str, str]
    marks: marks.Marks
    log: Path
    servers: Servers
    database: str
    postgres: asyncpg.Connection
    """To another database than the system's, so that measuring adds nothing to its transactions."""
    records: asyncpg.Connection
    """To the system's database."""
    client: Process
    about: dict[str, Any] = field(default_factory=dict)
    processes: dict[str, list[Process]] = field(default_factory=dict)
    ports: list[int] = field(default_factory=list)
    """Where its own services say how they are."""
    used: int = 0
    saturated: float | None = None
    """No-ops a second from 100 callers at once, once that was measured."""

    @property
    def groups(self) -> dict[str, list[int]]:
        """Process ids by process group."""
        broker = {"rabbitmq": [self.servers.rabbitmq.pid]} if self.servers.rabbitmq else {}
        return {
            "client": [self.client.pid],
            **{name: [process.pid for process in processes] for name, processes in self.processes.items()},
            **({"postgres": [self.servers.postgres.pid]} if self.system.postgres else {}),
            **(broker if self.system.broker else {}),
        }

    def can(self, order: str) -> bool:
        return order in self.about["orders"]

    def take(self, count: int) -> int:
        """Return the first of `count` unused indexes, and count them as used."""
        first, self.used = self.used, self.used + count
        return first

    async def order(self, order: str, **arguments: Any) -> dict[str, Any]:
        """Have the client do something. Gives `began` (epoch seconds) and `given`."""
        assert self.client.stdin
        assert self.client.stdout
        self.client.stdin.write(json.dumps({"order": order, **arguments}).encode() + b"\n")
        async with asyncio.timeout(ORDER):
            line = await self.client.stdout.readline()
        if not line:
            raise self.stalled(f"the client ended during {order}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def read(self) -> meters.Reading:
        return await meters.read(self.groups, self.postgres if self.system.postgres else None)

    async def ended(self, first: int, count: int) -> list[float]:
        """Wait until all of them have ended; gives when."""
        deadline, done = time.monotonic() + PATIENCE, 0
        while done < count:
            waiting = self.marks.ended(first + done, min(count - done, 1000))
            passed = next((k for k, at in enumerate(waiting) if not at), len(waiting))
            done += passed
            if passed:
                deadline = time.monotonic() + PATIENCE
            if passed == len(waiting):
                continue
            if time.monotonic() > deadline:
                raise self.stalled(f"{done} of {count} done, and no more in {PATIENCE:.0f} s")
            self.check()
            await asyncio.sleep(0.01)
        return self.marks.ended(first, count)

    async def recorded(self, first: int, count: int) -> list[float] | None:
        """Wait until the end of all of them is committed; gives when. None where nothing is recorded."""
        if self.about["recorded"] is None and not self.can("recorded"):
            return None
        deadline = time.monotonic() + PATIENCE
        while True:
            if self.can("recorded"):
                rows = (await self.order("recorded", first=first, count=count))["given"]
            else:
                rows = await self.records.fetch(self.about["recorded"], first, first + count)
            if len(rows) >= count:
                return [at for _, at in sorted((row[0], row[1]) for row in rows)]
            if time.monotonic() > deadline:
                raise self.stalled(f"{len(rows)} of {count} recorded after {PATIENCE:.0f} s")
            self.check()
            await asyncio.sleep(0.1)

    def check(self) -> None:
        """Raises Stalled if a process has ended."""
        for group, processes in self.processes.items():
            for process in processes:
                if process.returncode is not None:
                    raise self.stalled(f"a process of {group} ended with {process.returncode}")

    def stalled(self, message: str) -> Stalled:
        """Return an error with `message` and the last lines that its processes wrote."""
        lines = self.log.read_text(errors="replace").splitlines()[-8:]
        return Stalled("\n  ".join([message, *(line[:300] for line in lines)]))

    async def counted(self) -> Counter[str]:
        return await own.counted(self.ports)

    async def listening(self) -> None:
        """Wait until all of its own services say how they are: no-ops may be done before the last of them is up."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                await self.counted()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise self.stalled(f"not every service listens after {PATIENCE:.0f} s") from None
            self.check()
            await asyncio.sleep(0.1)

    async def start(self, command: Sequence[str]) -> Process:
        port = free_port()
        if self.system.name == "penstock":
            self.ports.append(port)
        with self.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=peers.ROOT,
                env=self.environment | {"PENSTOCK_PORT": str(port)},
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        reaper.watch_process(process.pid)
        return process


async def stop(processes: Sequence[Process]) -> None:
    """Ask them to end; after 15 s, end what they started as well (each is its own process group)."""
    for process in processes:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
    for process in processes:
        try:
            async with asyncio.timeout(15):
                await process.wait()
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def client_command(system: systems.System) -> list[str]:
    if system.node:
        return [str(systems.node() / "bin" / "node"), f"bench/systems/{system.name}.mjs", "client"]
    return [str(peers.PYTHON) if system.peer else sys.executable, "-m", "bench.client", system.name]


@asynccontextmanager
async def opened(system: systems.System, servers: Servers) -> AsyncIterator[Session]:
    """Everything of `system` from nothing to its first finished no-ops; all of it is gone afterwards."""
    name = f"bench_{system.name}"
    template = f" template {systems.TEMPLATE} strategy file_copy" if system.transport == systems.FULL else ""
    await servers.postgres.execute(
        f'drop database if exists "{name}" with (force)', f'create database "{name}"{template}'
    )
    database_url, broker_url = servers.postgres.url(name), ""
    if servers.rabbitmq and system.broker:
        broker_url = await asyncio.to_thread(servers.rabbitmq.add_vhost, name)
    log = servers.folder / f"{system.name}-{system.transport}.log"
    marks_file, folder = servers.memory / "marks", Path(tempfile.mkdtemp(dir=servers.folder))
    environment = os.environ | {
        systems.TRANSPORT: system.transport,
        systems.FOLDER: str(folder),
        systems.PORTS: ",".join(str(free_port()) for _ in range(4)),
        "BENCH_NODE_FOLDER": str(systems.NODE_FOLDER),
        systems.DATABASE: database_url,
        systems.BROKER: broker_url,
        "PENSTOCK_DATABASE_URL": database_url,
        marks.VARIABLE: str(marks_file),
        "PYTHONPATH": python_path(),  # what is measured is what stands here
    }
    if broker_url:
        environment["PENSTOCK_BROKER_URL"] = broker_url
    if system.transport == systems.CLASSIC:
        environment["PENSTOCK_QUEUE_TYPE"] = "classic"
    board = marks.Marks(marks_file, create=True)
    postgres = await asyncpg.connect(servers.postgres.url())
    records = await asyncpg.connect(database_url, command_timeout=PATIENCE)
    with log.open("ab") as errors:
        client = await asyncio.create_subprocess_exec(
            *client_command(system), cwd=peers.ROOT, env=environment,
            stdin=PIPE, stdout=PIPE, stderr=errors, start_new_session=True, limit=2**24,
        )  # fmt: skip
    session = Session(system, environment, board, log, servers, name, postgres, records, client)
    try:
        session.about = (await session.order("describe"))["given"]
        await session.order("prepare")
        for group, commands in session.about["processes"].items():
            session.processes[group] = [await session.start(command) for command in commands]
        await session.order("connect")
        first = session.take(WARM)
        await session.order("pace", call="send", first=first, count=WARM, rate=WARM)
        await session.ended(first, WARM)
        await session.listening()
        yield session
        await session.order("close")
    finally:
        await stop([*(process for processes in session.processes.values() for process in processes), client])
        await postgres.close()
        await records.close()
        shutil.rmtree(folder, ignore_errors=True)
        await servers.postgres.execute(f'drop database "{name}" with (force)')
        if servers.rabbitmq and broker_url:
            await asyncio.to_thread(servers.rabbitmq.drop_vhost, name)
