"""A flood of wrong log-ins, and a person with the right password beside it.

python -m tests.security.log_in_flood --seconds 60 --rate 1000 --addresses 50

An API in a process of its own gets so many wrong log-ins a second, from so many addresses of the loopback network, for names
that exist and names that do not. Meanwhile two people log in again and again: Ada, whose name is guessed, from an address that
the API knows, and Mia, whose name is not, from addresses that it has never seen. Printed is how long the right password waited,
refusals and their repetition included. Ada would be refused from a new address after people.MOST_OF_NAME guesses.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import SecretStr

from bench.servers import Postgres
from bench.services import service, until_it_listens
from penstock.operate import people
from penstock.service.embedded.cluster import free_port
from penstock.settings import Settings
from penstock.store.schema import migrate
from penstock.store.session.database import Database

RIGHT, WRONG = "correct horse battery staple", "wrong horse battery staple"
PATIENCE = 60.0
"""Seconds after which a log-in without an answer is given up."""
CONNECTIONS_OF_ADDRESS = 20


class Connection(asyncio.Protocol):
    """A connection that sends one request after the other."""

    def __init__(self) -> None:
        self.transport: asyncio.WriteTransport | None = None
        self._read = b""
        self._answered: asyncio.Future[int] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, end, body = self._read.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if end and len(body) >= int(length or 0) and self._answered is not None:
            if not self._answered.done():
                self._answered.set_result(int(head[9:12]))
            self._read = b""

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(exc or ConnectionResetError())

    def is_closed(self) -> bool:
        return self.transport is None or self.transport.is_closing()

    async def log_in(self, name: str, password: str) -> int:
        """Return the status of the answer."""
        body = json.dumps({"name": name, "password": password}).encode()
        head = (
            "POST /api/v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        assert self.transport is not None
        self._answered = asyncio.get_running_loop().create_future()
        self.transport.write(head.encode() + body)
        return await self._answered


async def connected(port: int, address: str) -> Connection:
    _, made = await asyncio.get_running_loop().create_connection(
        Connection, "127.0.0.1", port, local_addr=(address, 0)
    )
    return made


@dataclass(slots=True)
class Flood:
    """The attack: requests that begin at their instants, whatever became of those before."""

    port: int
    rate: float
    addresses: int
    sent: int = 0
    not_sent: int = 0
    statuses: Counter[object] = field(default_factory=Counter)
    _free: dict[str, deque[Connection]] = field(default_factory=dict)
    _open: Counter[str] = field(default_factory=Counter)
    _under_way: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self, stop: asyncio.Event) -> None:
        began, due = time.monotonic(), 0
        while not stop.is_set():
            while due < (time.monotonic() - began) * self.rate:
                due += 1
                address = f"127.0.1.{1 + due % self.addresses}"
                if len(self._free.get(address, ())) == 0 and self._open[address] >= CONNECTIONS_OF_ADDRESS:
                    self.not_sent += 1  # all of its connections wait for an answer
                    continue
                task = asyncio.create_task(self._one(address))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)
            await asyncio.sleep(0.005)
        for task in self._under_way:
            task.cancel()

    async def _one(self, address: str) -> None:
        free = self._free.setdefault(address, deque())
        try:
            while free and free[0].is_closed():
                free.popleft()
                self._open[address] -= 1
            if free:
                connection = free.popleft()
            else:
                self._open[address] += 1
                connection = await connected(self.port, address)
            self.sent += 1
            name = random.choice(["ada", "eve", f"name{random.randrange(10_000)}"])
            self.statuses[await connection.log_in(name, WRONG)] += 1
        except (OSError, asyncio.CancelledError) as error:
            self.statuses[type(error).__name__] += 1
            self._open[address] -= 1
            return
        if connection.is_closed():
            self._open[address] -= 1
        else:
            free.append(connection)


async def log_in_as_person(port: int, name: str, address: str) -> tuple[float, int]:
    """Log in, and try again where the API refuses. Return the seconds until the session, and the tries."""
    began, tries = time.monotonic(), 0
    while time.monotonic() - began < PATIENCE:
        tries += 1
        connection = await connected(port, address)
        try:
            async with asyncio.timeout(PATIENCE):
                status = await connection.log_in(name, RIGHT)
        except (TimeoutError, OSError):
            status = 0
        finally:
            if connection.transport is not None:
                connection.transport.close()
        if status == 200:
            return time.monotonic() - began, tries
        await asyncio.sleep(1)
    return float("inf"), tries


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def measure(given: argparse.Namespace, url: str) -> None:
    settings = Settings(database_url=SecretStr(url))
    await migrate.upgrade(settings)
    home = Database(settings, role="test")
    for name in ("ada", "eve", "mia"):
        await people.create(home.session(), name, RIGHT, ["operator"], by="test")
    port = free_port()
    environment = {
        "PENSTOCK_DATABASE_URL": url,
        "PENSTOCK_PORT": "0",
        "PENSTOCK_API_PORT": str(port),
        "PENSTOCK_LOG_LEVEL": "error",
    }
    with service(Path(__file__).parents[2], ["api"], environment):
        await until_it_listens(port)
        alone = [(await log_in_as_person(port, "ada", "127.0.0.1"))[0] for _ in range(20)]
        print(f"without a flood: p50 {statistics.median(alone):.2f} s, worst {max(alone):.2f} s", flush=True)
        flood, stop = Flood(port, given.rate, given.addresses), asyncio.Event()
        attack = asyncio.create_task(flood.run(stop))
        await asyncio.sleep(3)
        known: list[float] = []
        fresh: list[float] = []
        began, tries = time.monotonic(), 0
        while time.monotonic() - began < given.seconds:
            for times, name, address in (
                (known, "ada", "127.0.0.1"),
                (fresh, "mia", f"127.0.2.{1 + len(fresh) % 250}"),
            ):
                seconds, needed = await log_in_as_person(port, name, address)
                times.append(seconds)
                tries = max(tries, needed)
        took = time.monotonic() - began + 3
        stop.set()
        await attack
    rows = await home.session().fetch("select count(*) from audit where outcome = 'refused'")
    await home.close()
    for name, times in (("a guessed name, a known address", known), ("another name, fresh addresses", fresh)):
        print(
            f"right password, {name}: {len(times)} log-ins, p50 {statistics.median(times):.2f} s, "
            f"p99 {quantile(times, 0.99):.2f} s, worst {max(times):.2f} s"
        )
    print(
        f"wrong ones: {flood.sent / took:.0f} a second from {given.addresses} addresses, {flood.not_sent} not sent since all "
        f"connections of the address waited; answers {dict(flood.statuses)}; most tries of a right one {tries}; "
        f"{rows[0][0]} rows of the audit"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=1000, help="wrong log-ins a second")
    parser.add_argument("--addresses", type=int, default=50)
    given = parser.parse_args()
    server = Postgres()
    try:
        asyncio.run(measure(given, server.url()))
    finally:
        server.close()


if __name__ == "__main__":
    main()
