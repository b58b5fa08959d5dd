"""Sixteen executors and sixteen workers, as users start them, on a PostgreSQL as it comes: 100 connections, of which a user who
is not a superuser gets 97.

    python -m bench.connections                                   # both transports: five minutes
    python -m bench.connections --transport postgres --of-each 24 # with what is one too many for `penstock doctor`

A quarter of them comes first, and has work to do from then on, so that they have all the connections that they may when the
others start. A client submits that work, and every other second somebody calls `penstock doctor` and `penstock executions`.
It ends with 1 where a process ended or never became ready, an execution was lost or failed, or an operator got no session.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncpg
from pydantic import SecretStr

from bench.replicas import Fleet, role_of
from bench.servers import Servers, started
from penstock import Client, Definitions, Settings, action
from penstock.operate.apply import register
from penstock.store.schema import migrate

DATABASE, USER, PASSWORD = "connections", "penstock_services", "secret"
BATCH = 200
"""Executions that are started together."""
LOOK = 0.1
"""Seconds between two looks at the sessions."""
ASK = 2.0
"""Seconds between two questions of an operator."""
PATIENCE = 180.0
"""Seconds for all to become ready, and for the work to end."""
SESSIONS = """
select split_part(application_name, ':', 1) as role, application_name as name, count(*)::integer as count
from pg_stat_activity where usename = $1 group by 1, 2
"""
STATUSES = "select status, count(*)::integer as count from execution group by 1"
PORTS = range(20_000, 30_000)
COMMANDS = (("doctor", "--json"), ("executions", "--limit", "1", "--json"))


@action(pack="connections")
async def noop(index: int) -> int:
    return index


@dataclass
class Seen:
    """The observed sessions, and the requests for sessions by role."""

    most: int = 0
    """Sessions at once."""
    of_one: Counter[str] = field(default_factory=Counter)
    """The most that one executor, one worker and one client had, since all were there."""
    all_there: bool = False
    asked: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    """Commands of an operator, and those of them that got no session."""
    said: Counter[str] = field(default_factory=Counter)
    """What `penstock doctor` said of the connections."""
    unready: Counter[str] = field(default_factory=Counter)
    """Times that one who had been ready was not."""


@dataclass(frozen=True)
class Installation:
    servers: Servers
    fleet: Fleet
    settings: Settings
    ports: dict[str, int] = field(default_factory=dict)

    def start(self, roles: Sequence[str]) -> None:
        for role in roles:
            port = free_port()
            self.ports[self.fleet.start(role, PENSTOCK_PORT=str(port))] = port


def free_port() -> int:
    """Below those that the system gives to connections: one of them would be taken again before the service is there."""
    for port in random.sample(PORTS, len(PORTS)):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise OSError("no port is free")


@asynccontextmanager
async def installed(transport: str) -> AsyncIterator[Installation]:
    """Servers with nothing but their defaults, and a database that belongs to an ordinary user."""
    async with started(broker=transport == "rabbitmq") as servers:
        await servers.postgres.execute(
            f"create role {USER} login password '{PASSWORD}'", f"create database {DATABASE} owner {USER}"
        )
        superuser = servers.postgres.url(DATABASE)
        place = superuser.rpartition("@")[2]
        database = f"postgresql://{USER}:{PASSWORD}@{place}"
        broker = servers.rabbitmq.add_vhost(DATABASE) if servers.rabbitmq else None
        settings = Settings(
            database_url=SecretStr(database), broker_url=SecretStr(broker) if broker else None
        )
        await migrate.upgrade(settings)
        outside = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        variables = {"PENSTOCK_DATABASE_URL": database, "PENSTOCK_LOG_LEVEL": "warning"}
        if broker:
            variables["PENSTOCK_BROKER_URL"] = broker
        fleet = Fleet({**outside, **variables}, servers.folder / "services.log", "bench/connections.py")
        try:
            yield Installation(servers, fleet, settings)
        finally:
            fleet.close()


async def watch(home: Installation, record: Seen) -> None:
    """On a session of the superuser, which has three of its own, and is not counted."""
    connection = await asyncpg.connect(home.servers.postgres.url(DATABASE))
    try:
        while True:
            rows = await connection.fetch(SESSIONS, USER)
            record.most = max(record.most, sum(row["count"] for row in rows))
            if record.all_there:
                for row in rows:
                    record.of_one[row["role"]] = max(record.of_one[row["role"]], row["count"])
            await asyncio.sleep(LOOK)
    finally:
        await connection.close()


async def work(client: Client, enough: asyncio.Event) -> int:
    """Start executions, a batch as soon as most of the last one has ended, until it is enough. Returns how many."""
    count = 0
    while not enough.is_set():
        ids = await client.start_many("connections.noop", [{"index": n} for n in range(BATCH)])
        count += len(ids)
        await client.result(ids[-BATCH // 4], timeout=PATIENCE)
    return count


async def ask(home: Installation, record: Seen) -> None:
    """Run the commands of an operator, each in a process of its own."""
    while True:
        for command in COMMANDS:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "penstock", *command),
                env=home.fleet.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            out, err = await process.communicate()
            record.asked[command[0]] += 1
            output = out.decode() + err.decode()
            if "TooManyConnections" in output or "connection slots" in output:
                record.refused[command[0]] += 1
            if command[0] == "doctor":
                for line in out.decode().splitlines():
                    finding = json.loads(line)
                    if finding["what"] == "connections":
                        record.said[f"{finding['state']}: {finding['says']}"] += 1
        await asyncio.sleep(ASK)


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5) as answer:
            return int(answer.status) == 200
    except (OSError, urllib.error.HTTPError):
        return False


async def all_ready(home: Installation) -> None:
    """Wait until every one of them says so. Raises TimeoutError."""
    waiting = dict(home.ports)
    try:
        async with asyncio.timeout(PATIENCE):
            while waiting:
                for name, port in list(waiting.items()):
                    if await asyncio.to_thread(is_ready, port):
                        del waiting[name]
                await asyncio.sleep(LOOK)
    except TimeoutError:
        gone = {name: home.fleet.alive[name].poll() for name in waiting}
        log = home.fleet.log.read_text(errors="replace")
        raise TimeoutError(f"not ready, with their exit codes: {gone}\n{log[-4000:]}") from None


async def stays_ready(home: Installation, record: Seen) -> None:
    while True:
        for name, port in home.ports.items():
            if not await asyncio.to_thread(is_ready, port):
                record.unready[role_of(name)] += 1
        await asyncio.sleep(1)


async def run(transport: str, of_each: int, seconds: float) -> bool:
    """Prints what was seen; says whether all was well."""
    record, enough = Seen(), asyncio.Event()
    first = max(1, of_each // 4)
    async with installed(transport) as home:
        async with Client.connect(home.settings) as client:
            await register(client.session, Definitions([noop]))
        async with Client.connect(home.settings) as client, asyncio.TaskGroup() as group:
            beside: list[asyncio.Task[None]] = []

            def keep(activity: Callable[[Installation, Seen], Coroutine[Any, Any, None]]) -> None:
                beside.append(group.create_task(activity(home, record)))

            keep(watch)
            home.start(("executor", "worker") * first)
            await all_ready(home)
            working = group.create_task(work(client, enough))
            keep(ask)
            await asyncio.sleep(seconds / 2)
            print(f"{transport}: {2 * first} at work have up to {record.most} sessions", flush=True)
            began = time.monotonic()
            home.start(("executor", "worker") * (of_each - first))
            await all_ready(home)
            ready_seconds = time.monotonic() - began
            await asyncio.sleep(12)  # until each of them has beaten, and given back what is above its share
            record.all_there = True
            keep(stays_ready)
            await asyncio.sleep(seconds)
            enough.set()
            count = await working
            for task in beside:
                task.cancel()
        statuses = await ended(home, count)
        gone = [name for name, process in home.fleet.alive.items() if process.poll() is not None]
        log = home.fleet.log.read_text(errors="replace")
    print(
        f"{transport}: {of_each} executors and {of_each} workers on 100 connections (97 for users): "
        f"the other {2 * (of_each - first)} were ready {ready_seconds:.0f} s after they were started, {len(gone)} ended\n"
        f"  sessions: {record.most} at the most; once all were there, of one {dict(record.of_one)}\n"
        f"  work: {count} started, {dict(statuses)}\n"
        f"  operator: {dict(record.asked)} asked, {dict(record.refused)} got no session; not ready: {dict(record.unready)}\n"
        f"  waited for a connection to begin, or to beat: {log.count('service.waits')}, {log.count('heartbeat.waits')}\n"
        f"  doctor: {list(record.said)[-1]}",
        flush=True,
    )
    return not gone and not record.refused and not record.unready and statuses == {"completed": count}


async def ended(home: Installation, count: int) -> Counter[str]:
    """Return the number of executions by status, once none is open or the patience is over."""
    connection = await asyncpg.connect(home.servers.postgres.url(DATABASE))
    statuses = Counter[str]()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while statuses["completed"] < count:
                statuses = Counter({row["status"]: row["count"] for row in await connection.fetch(STATUSES)})
                await asyncio.sleep(LOOK)
    await connection.close()
    return statuses


async def main() -> bool:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--of-each", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=30, help="of work once all are there")
    parser.add_argument(
        "--transport", nargs="+", choices=["rabbitmq", "postgres"], default=["rabbitmq", "postgres"]
    )
    options = parser.parse_args()
    well = [await run(transport, options.of_each, options.seconds) for transport in options.transport]
    return all(well)


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
