"""Starts over HTTP from 100 callers: how many a second, how long each takes, and what they cost the API process.

python -m bench.http_starts --rounds 3 --trees . ../before --worker --cpus 0,1
python -m bench.http_starts --rounds 30 --count 300 --worker --rate 300

In each round the API of a checkout and the Python client are asked in turn, on the same PostgreSQL, and their milliseconds are
set against each other: a machine that is slower for a minute is so for both. Where each caller begins its next start when the
one before is done, the milliseconds are those of the rates, and say the same twice; `--rate` has all of them begin so many a
second, whoever is asked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
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
from penstock.store.schema import migrate

WARM = 1000


@action(pack="bench")
async def noop(index: int) -> int:
    return index


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one turn: starts a second, their median in milliseconds, and CPU seconds of the API per 1,000 starts."""

    rate: float
    p50: float
    user: float = 0.0
    system: float = 0.0


Asked = Callable[[int], Awaitable[Figures]]
"""Has so many started."""


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
        if not (response := await self._answered).startswith(b"HTTP/1.1 201"):
            raise RuntimeError(response.decode())


def cpu_of(pid: int) -> tuple[float, float]:
    """Return the CPU seconds of all threads of a process, in user and in system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    tick = os.sysconf("SC_CLK_TCK")
    return int(fields[11]) / tick, int(fields[12]) / tick


@asynccontextmanager
async def api(tree: Path, settings: dict[str, str], token: str, rate: float | None) -> AsyncIterator[Asked]:
    """Run an API of this checkout, warmed up with some requests."""
    port = free_port()
    with service(tree, ["api"], {**settings, "PENSTOCK_API_PORT": str(port)}) as pid:
        await until_it_listens(port)
        loop = asyncio.get_running_loop()
        # No more than begin each second: the API closes connections that say nothing for five.
        needed = CALLERS if rate is None else min(CALLERS, max(1, int(rate)))
        free: asyncio.Queue[Caller] = asyncio.Queue()

        async def order(index: int) -> None:
            caller = await free.get()  # each in turn
            await caller.start(index)
            free.put_nowait(caller)

        async def asked(count: int) -> Figures:
            connections = [
                await loop.create_connection(lambda: Caller(token), "127.0.0.1", port) for _ in range(needed)
            ]
            for _, caller in connections:
                free.put_nowait(caller)
            cpu_before, began = cpu_of(pid), time.monotonic()
            latencies = await callers(order, count, rate)
            seconds, cpu_after = time.monotonic() - began, cpu_of(pid)
            for transport, _ in connections:
                transport.close()
                free.get_nowait()
            user, system = ((b - a) * 1000 / count for a, b in zip(cpu_before, cpu_after, strict=True))
            return Figures(count / seconds, statistics.median(latencies) * 1000, user, system)

        await asked(WARM)
        yield asked


async def callers(order: Order, count: int, rate: float | None) -> list[float]:
    """Return the seconds of each start: by 100 callers that start one after another, or at `rate` starts a second."""
    if rate is None:
        return await crowd(order, 0, count)
    times = await pace(order, range(count), rate)
    return [done - sent for sent, done in zip(times["sent"], times["done"], strict=True)]


@asynccontextmanager
async def python_client(settings: Settings, rate: float | None) -> AsyncIterator[Asked]:
    async with Client.connect(settings) as client:

        async def order(index: int) -> None:
            await client.start("bench.noop", {"index": index})

        async def asked(count: int) -> Figures:
            began = time.monotonic()
            latencies = await callers(order, count, rate)
            return Figures(count / (time.monotonic() - began), statistics.median(latencies) * 1000)

        await asked(WARM)
        yield asked


async def measure(options: argparse.Namespace, url: str) -> None:
    settings = Settings(database_url=SecretStr(url))
    await migrate.upgrade(settings)
    async with Client.connect(settings) as client:
        await register(client.session, load(Path(__file__)))
        _, token = await create_token(client.session, "bench", ["operate"], by="bench")
    environment = {"PENSTOCK_DATABASE_URL": url, "PENSTOCK_PORT": "0", "PENSTOCK_LOG_LEVEL": "error"}
    with ExitStack() as stack:
        if options.worker:
            checkout = Path(__file__).parents[1]
            for words in (["executor"], ["worker", "--module", str(Path(__file__))]):
                stack.enter_context(service(checkout, words, environment))
        for tree in options.trees:
            async with (
                api(tree.resolve(), environment, token, options.rate) as over_http,
                python_client(settings, options.rate) as by_client,
            ):
                pairs = [
                    (await over_http(options.count), await by_client(options.count))
                    for _ in range(options.rounds)
                ]
            for label, several in zip(
                (str(tree), "the Python client"), zip(*pairs, strict=True), strict=True
            ):
                print(f"{label:24} " + "   ".join(_said(several)), flush=True)
            times = [http.p50 / client.p50 for http, client in pairs]
            print(
                f"{'':24} its p50 is {statistics.median(times):.2f} x the client's ({_range(times, '.2f')})",
                flush=True,
            )


def _said(several: Sequence[Figures]) -> Iterator[str]:
    columns: list[tuple[str, Callable[[Figures], float], str]] = [
        ("starts/s", lambda figures: figures.rate, ".0f"),
        ("p50 ms", lambda figures: figures.p50, ".2f"),
        ("user s per 1,000", lambda figures: figures.user, ".3f"),
        ("system s per 1,000", lambda figures: figures.system, ".3f"),
    ]
    for name, value, form in columns:
        values = [value(figures) for figures in several]
        yield f"{name} {statistics.median(values):{form}} ({_range(values, form)})"


def _range(values: Sequence[float], form: str) -> str:
    return f"{min(values):{form}}..{max(values):{form}}"


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
    options = parser.parse_args()
    if options.cpus:
        os.sched_setaffinity(0, {int(cpu) for cpu in options.cpus.split(",")})
    server = Postgres()
    try:
        asyncio.run(measure(options, server.url()))
    finally:
        server.close()


if __name__ == "__main__":
    main()
