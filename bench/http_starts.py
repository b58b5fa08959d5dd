"""Starts over HTTP from 100 callers: how many a second, how long each takes, and what they cost the API process.

python -m bench.http_starts --rounds 3 --trees . ../before --worker --cpus 0,1
python -m bench.http_starts --rounds 3 --worker --rate 500

Each round asks an API of each checkout in turn, and once the Python client, all on the same PostgreSQL: CPU seconds are the
steadier figure where other programs run beside it. Where each caller begins its next start when the one before is done, the
milliseconds are those of the rates, and say the same twice; `--rate` has all of them begin so many a second, whoever is asked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from bench.client import CALLERS, Order, crowd, pace
from bench.servers import Postgres
from bench.services import service, until_it_listens
from penstock import Client, Settings, action, load
from penstock.operate.access import create_token
from penstock.operate.apply import register
from penstock.service.embedded.cluster import free_port
from penstock.store import migrate

WARM = 1000


@action(pack="bench")
async def noop(index: int) -> int:
    return index


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one turn: starts a second, the milliseconds that half of them took, CPU seconds of the API for 1,000 of them."""

    rate: float
    p50: float
    user: float = 0.0
    system: float = 0.0


class Caller(asyncio.Protocol):
    """A connection that is kept; one request after the other, written by hand so that it costs the machine little."""

    def __init__(self, token: str) -> None:
        self._token, self._read = token, b""
        self._answered: asyncio.Future[bytes] | None = None
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, end, body = self._read.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if end and len(body) >= int(length) and self._answered is not None:
            self._answered.set_result(self._read)
            self._read = b""

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(exc or ConnectionResetError("the API closed the connection"))

    async def start(self, index: int) -> None:
        """Raises RuntimeError for any answer but that it is started."""
        body = json.dumps({"action": "bench.noop", "parameters": {"index": index}}).encode()
        head = (
            f"POST /api/v1/executions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self._token}\r\n"
            f"Accept: */*\r\nUser-Agent: bench\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._answered = asyncio.get_running_loop().create_future()
        assert self._transport is not None
        self._transport.write(head.encode() + body)
        if not (said := await self._answered).startswith(b"HTTP/1.1 201"):
            raise RuntimeError(said.decode())


def cpu_of(pid: int) -> tuple[float, float]:
    """Seconds in user and in system mode, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    tick = os.sysconf("SC_CLK_TCK")
    return int(fields[11]) / tick, int(fields[12]) / tick


async def over_http(
    tree: Path, settings: dict[str, str], token: str, count: int, rate: float | None
) -> Figures:
    port = free_port()
    with service(tree, ["api"], {**settings, "PENSTOCK_API_PORT": str(port)}) as pid:
        await until_it_listens(port)
        loop = asyncio.get_running_loop()
        # No more than begin each second: the API closes connections that say nothing for five.
        needed = CALLERS if rate is None else min(CALLERS, max(1, int(rate)))
        made = [await loop.create_connection(lambda: Caller(token), "127.0.0.1", port) for _ in range(needed)]
        free: asyncio.Queue[Caller] = asyncio.Queue()
        for _, caller in made:
            free.put_nowait(caller)

        async def order(index: int) -> None:
            caller = await free.get()  # each in turn
            await caller.start(index)
            free.put_nowait(caller)

        await callers(order, 0, WARM, rate)
        before, began = cpu_of(pid), time.monotonic()
        took = await callers(order, WARM, count, rate)
        seconds, after = time.monotonic() - began, cpu_of(pid)
        for transport, _ in made:
            transport.close()
    user, system = ((b - a) * 1000 / count for a, b in zip(before, after, strict=True))
    return Figures(count / seconds, statistics.median(took) * 1000, user, system)


async def callers(order: Order, first: int, count: int, rate: float | None) -> list[float]:
    """Seconds that each took: of 100 that each begin the next when they are done, or of so many that begin each second."""
    if rate is None:
        return await crowd(order, first, count)
    times = await pace(order, range(first, first + count), rate)
    return [done - sent for sent, done in zip(times["sent"], times["done"], strict=True)]


async def by_client(settings: Settings, count: int, rate: float | None) -> Figures:
    async with Client.connect(settings) as client:

        async def order(index: int) -> None:
            await client.start("bench.noop", {"index": index})

        await callers(order, 0, WARM, rate)
        began = time.monotonic()
        took = await callers(order, WARM, count, rate)
        return Figures(count / (time.monotonic() - began), statistics.median(took) * 1000)


async def measure(given: argparse.Namespace, url: str) -> None:
    settings = Settings(database_url=SecretStr(url))
    await migrate.upgrade(settings)
    async with Client.connect(settings) as client:
        await register(client.session, load(Path(__file__)))
        _, token = await create_token(client.session, "bench", ["operate"], by="bench")
    environment = {"PENSTOCK_DATABASE_URL": url, "PENSTOCK_PORT": "0", "PENSTOCK_LOG_LEVEL": "error"}
    found: dict[str, list[Figures]] = {}
    with ExitStack() as stack:
        if given.worker:
            here = Path(__file__).parents[1]
            for words in (["executor"], ["worker", "--module", str(Path(__file__))]):
                stack.enter_context(service(here, words, environment))
        for _ in range(given.rounds):
            for tree in given.trees:
                figures = await over_http(tree.resolve(), environment, token, given.count, given.rate)
                found.setdefault(str(tree), []).append(figures)
            found.setdefault("the Python client", []).append(
                await by_client(settings, given.count, given.rate)
            )
    for what, several in found.items():
        print(f"{what:24} " + "   ".join(_said(several)), flush=True)


def _said(several: list[Figures]) -> Iterator[str]:
    shown: list[tuple[str, Callable[[Figures], float], str]] = [
        ("starts/s", lambda one: one.rate, ".0f"),
        ("p50 ms", lambda one: one.p50, ".1f"),
        ("user s per 1,000", lambda one: one.user, ".3f"),
        ("system s per 1,000", lambda one: one.system, ".3f"),
    ]
    for name, value, form in shown:
        values = [value(one) for one in several]
        yield f"{name} {statistics.median(values):{form}} ({min(values):{form}}..{max(values):{form}})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=10_000, help="starts in each turn")
    parser.add_argument(
        "--trees", type=Path, nargs="+", default=[Path()], help="checkouts whose API is asked"
    )
    parser.add_argument(
        "--worker", action="store_true", help="with an executor and a worker that run them meanwhile"
    )
    parser.add_argument(
        "--rate", type=float, help="starts that begin each second (else as many as 100 callers do)"
    )
    parser.add_argument("--cpus", default="", help="the cores that all of it shares, such as 0,1")
    given = parser.parse_args()
    if given.cpus:
        os.sched_setaffinity(0, {int(cpu) for cpu in given.cpus.split(",")})
    server = Postgres()
    try:
        asyncio.run(measure(given, server.url()))
    finally:
        server.close()


if __name__ == "__main__":
    main()
