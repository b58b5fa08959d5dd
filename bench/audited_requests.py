"""The cost of the audit: CPU seconds of an API and of PostgreSQL for 1,000 requests, in pairs with a checkout without one.

python -m bench.audited_requests --without ../silent --rounds 10 --cpus 0,1

`--without` is a copy of this checkout whose routes begin no change. Both APIs work on the same database, beside an executor that
seals the rows. Each turn asks for starts, of which none is audited, and for changes of a rule, which all are.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from pydantic import SecretStr

from bench.client import crowd
from bench.http_starts import Caller, noop
from bench.servers import Postgres
from bench.services import service, until_it_listens
from penstock import Client, Rule, Settings, Trigger
from penstock.language.loading import Definitions
from penstock.operate import audit
from penstock.operate.access import create_token
from penstock.operate.apply import register
from penstock.service.embedded.cluster import free_port
from penstock.store.schema import migrate
from penstock.store.session.database import Database

CALLERS = 100
WARM = 1000
RULE = "bench.changed"


class Requester(Caller):
    """A connection that starts, or changes."""

    async def change(self) -> None:
        """Enable the rule. Raises RuntimeError for any answer but that it is done."""
        body = b'{"reason": "bench"}'
        head = (
            f"POST /api/v1/rules/{RULE}/enable HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._answered = asyncio.get_running_loop().create_future()
        assert self._transport is not None
        self._transport.write(head.encode() + body)
        if not (answer := await self._answered).startswith(b"HTTP/1.1 200"):
            raise RuntimeError(answer.decode())


Turn = Callable[[int, int], Awaitable[float]]
"""Makes so many requests, of which one in so many is a change (0: none). Returns CPU seconds of the API and of PostgreSQL for
1,000."""


def cpu_of_threads(pid: int) -> float:
    """Return the CPU seconds of a process in all its threads, to the nanosecond. A clock tick is too coarse for a turn."""
    return (
        sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
    )


def cpu_of_all(server: int) -> float:
    """Return the CPU seconds of a PostgreSQL server: its processes, and those of its processes that have ended."""
    fields = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()
    ended = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return ended + sum(cpu_of_threads(int(pid)) for pid in children)


SEALED = 2.5
"""Seconds after which the executor has sealed the rows of a turn."""


@asynccontextmanager
async def api(tree: Path, settings: dict[str, str], token: str, server: int) -> AsyncIterator[Turn]:
    port = free_port()
    with service(tree, ["api"], {**settings, "PENSTOCK_API_PORT": str(port)}) as pid:
        await until_it_listens(port)
        loop = asyncio.get_running_loop()

        async def turn(count: int, one_in: int) -> float:
            free: asyncio.Queue[Requester] = asyncio.Queue()
            made = [
                await loop.create_connection(lambda: Requester(token), "127.0.0.1", port)
                for _ in range(CALLERS)
            ]
            for _, caller in made:
                free.put_nowait(caller)

            async def order(index: int) -> None:
                caller = await free.get()
                if one_in and index % one_in == 0:
                    await caller.change()
                else:
                    await caller.start(index)
                free.put_nowait(caller)

            before = cpu_of_threads(pid) + cpu_of_all(server)
            await crowd(order, 0, count)
            await asyncio.sleep(SEALED)
            spent = cpu_of_threads(pid) + cpu_of_all(server) - before
            for transport, _ in made:
                transport.close()
            return spent * 1000 / count

        yield turn


async def measure(given: argparse.Namespace, url: str, server: int) -> None:
    settings = Settings(database_url=SecretStr(url))
    await migrate.upgrade(settings)
    async with Client.connect(settings) as client:
        trigger = Trigger("bench.happened")
        rule = Rule(RULE, trigger="bench.happened", action="bench.noop", params={"index": 1})
        await register(client.session, Definitions([noop, trigger, rule]))
        _, token = await create_token(client.session, "bench", ["operate"], by="bench")
    environment = {"PENSTOCK_DATABASE_URL": url, "PENSTOCK_PORT": "0", "PENSTOCK_LOG_LEVEL": "error"}
    here = Path(__file__).parents[1]
    with ExitStack() as stack:
        stack.enter_context(service(here, ["executor"], environment))
        async with (
            api(here, environment, token, server) as audited,
            api(given.without.resolve(), environment, token, server) as silent,
        ):
            for turn in (audited, silent):
                await turn(WARM, 10)
            for name, one_in, count in (
                ("starts alone", 0, given.count),
                ("1 change in 100", 100, given.count),
                ("1 change in 20", 20, given.count),
                ("changes alone", 1, given.count // 10),
            ):
                pairs = []
                for number in range(given.rounds):
                    order = (audited, silent) if number % 2 else (silent, audited)
                    spent = {turn: await turn(count, one_in) for turn in order}
                    pairs.append((spent[audited], spent[silent]))
                ratios = [a / b for a, b in pairs]
                print(
                    f"{name:16} CPU-s per 1,000: audited {statistics.median(a for a, _ in pairs):.3f}, "
                    f"without {statistics.median(b for _, b in pairs):.3f}, ratio of pairs "
                    f"{statistics.median(ratios):.3f} (quartiles {_quartiles(ratios)})",
                    flush=True,
                )
        await asyncio.sleep(5)
    home = Database(settings, role="bench")
    found = await audit.verify(home.session())
    await home.close()
    print(f"{found.rows} rows are sealed, {found.unsealed} are not, {len(found.faults)} faults")


def _quartiles(ratios: list[float]) -> str:
    low, _, high = statistics.quantiles(ratios)
    return f"{low:.3f}..{high:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", type=Path, required=True, help="a checkout that notes nothing")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--count", type=int, default=5000, help="requests in each turn")
    parser.add_argument("--cpus", default="", help="the cores that all of it shares, such as 0,1")
    given = parser.parse_args()
    if given.cpus:
        os.sched_setaffinity(0, {int(cpu) for cpu in given.cpus.split(",")})
    server = Postgres()
    try:
        asyncio.run(measure(given, server.url(), server.pid))
    finally:
        server.close()


if __name__ == "__main__":
    main()
