"""A Python worker that calls a gateway, beside one with a session with the database; and what idle workers cost a gateway.

python -m bench.gateways --rounds 3
python -m bench.gateways --idle 1000

In each round both workers are measured in turn, on the same PostgreSQL, which also carries the messages. Ratios are of medians.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import time
import uuid
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import httpx
from pydantic import SecretStr

from bench.audited_requests import cpu_of_all, cpu_of_threads
from bench.servers import Postgres
from bench.services import service, until_it_listens
from penstock import Client, Settings, action, load
from penstock.operate.access import create_token
from penstock.operate.apply import register
from penstock.service.embedded.cluster import free_port
from penstock.store.schema import migrate

KINDS = ("direct", "gateway")
RATE = 20.0
LONGEST_WAIT_S = 60.0
"""Seconds for which an idle worker lets a take wait."""
SETTLED_S = 5.0
"""Seconds from the hello of the last idle worker to the first figures."""
STATEMENTS = {"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "top"}
"""Settings of a PostgreSQL that counts the statements of its clients."""
COUNTS = """
select d.xact_commit + d.xact_rollback, (select coalesce(sum(calls), 0)::bigint from pg_stat_statements where dbid = d.datid)
from pg_stat_database d where d.datname = current_database()
"""


@action(pack="bench", route="direct")
async def direct() -> float:
    return time.time()


@action(pack="bench", route="gateway")
async def gateway() -> float:
    return time.time()


async def start_p50(client: Client, kind: str, count: int) -> float:
    """Return the milliseconds from a start to its begin that half of the starts needed, at RATE a second."""
    sent: list[tuple[uuid.UUID, float]] = []
    began = time.monotonic()
    for number in range(count):
        await asyncio.sleep(max(0.0, began + number / RATE - time.monotonic()))
        at = time.time()
        sent.append((await client.start(f"bench.{kind}", {}), at))
    values: list[float] = [(await client.result(id, timeout=60) - at) * 1000 for id, at in sent]
    return statistics.median(values)


async def saturated(client: Client, kind: str, count: int) -> float:
    """Return the no-ops a second that a worker ends, of `count` that are started by 100 callers."""
    ids: list[uuid.UUID] = []

    async def caller(numbers: range) -> None:
        ids.extend([await client.start(f"bench.{kind}", {}) for _ in numbers])

    began = time.monotonic()
    await asyncio.gather(*(caller(range(count // 100)) for _ in range(100)))
    await asyncio.gather(*(client.result(id, timeout=300) for id in ids[-100:]))
    while await client.session.fetch("select from execution where finished_at is null limit 1"):
        await asyncio.sleep(0.02)
    return count / (time.monotonic() - began)


async def compare(options: argparse.Namespace, client: Client) -> None:
    for kind in KINDS:
        await saturated(client, kind, options.warm)
    for name, measure, count in (
        ("start p50 ms at 20/s", start_p50, options.samples),
        ("no-ops/s saturated", saturated, options.count),
    ):
        rounds = [
            {kind: await measure(client, kind, count) for kind in KINDS[:: 1 if number % 2 else -1]}
            for number in range(options.rounds)
        ]
        ratios = [figures["gateway"] / figures["direct"] for figures in rounds]
        for kind in KINDS:
            print(f"{name}: {kind} {statistics.median(figures[kind] for figures in rounds):.2f}", flush=True)
        print(
            f"{name}: ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}..{max(ratios):.2f})",
            flush=True,
        )


async def hello(http: httpx.AsyncClient, number: int) -> dict[str, str]:
    """Begin the session of a worker. Return the header of its calls."""
    body = {
        "name": f"idle-{number}",
        "language": "python",
        "sdk": "bench",
        "routes": ["gateway"],
        "actions": [{"ref": "bench.gateway"}],
        "slots": 1,
    }
    answer = (await http.post("/api/v1/work/hello", json=body)).raise_for_status()
    return {"penstock-session": answer.json()["session"]}


async def wait_for_work(http: httpx.AsyncClient, session: dict[str, str]) -> None:
    """Send takes without an end. The first one is shorter, so that the takes of many workers do not end all at once."""
    wait = random.uniform(1.0, LONGEST_WAIT_S)
    while True:
        take = {"request": str(uuid.uuid4()), "slots": 1, "wait": wait}
        (await http.post("/api/v1/work/take", json=take, headers=session)).raise_for_status()
        wait = LONGEST_WAIT_S


@dataclass(frozen=True, slots=True)
class Cost:
    """Figures since the start of the servers. CPU is in seconds."""

    at: float
    gateway: float
    postgres: float
    transactions: int
    statements: int


async def cost(connection: asyncpg.Connection[asyncpg.Record], gateway_pid: int, postgres_pid: int) -> Cost:
    row = await connection.fetchrow(COUNTS)
    assert row is not None
    return Cost(time.monotonic(), cpu_of_threads(gateway_pid), cpu_of_all(postgres_pid), *row)


async def idle(url: str, server: Postgres, token: str, gateway_pid: int, count: int, seconds: float) -> None:
    """Print what `count` workers that wait for work cost their gateway and PostgreSQL."""
    async with AsyncExitStack() as stack:
        connection = await asyncpg.connect(server.url())
        stack.push_async_callback(connection.close)
        workers, began = [], time.monotonic()
        for number in range(count):
            # A client with many connections looks at all of them for each call, so each worker has its own.
            http = httpx.AsyncClient(
                base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=90, verify=False
            )
            await stack.enter_async_context(http)
            session = await hello(http, number)
            task = asyncio.create_task(wait_for_work(http, session))
            workers.append((http, session, task))
        started = time.monotonic() - began
        await asyncio.sleep(SETTLED_S)
        start = await cost(connection, gateway_pid, server.pid)
        await asyncio.sleep(seconds)
        end = await cost(connection, gateway_pid, server.pid)
        elapsed = end.at - start.at
        print(
            f"{count} idle workers (started in {started:.0f} s): "
            f"gateway {100 * (end.gateway - start.gateway) / elapsed:.2f} % of a core, "
            f"PostgreSQL {100 * (end.postgres - start.postgres) / elapsed:.2f} %, "
            f"{(end.transactions - start.transactions) / elapsed:.1f} transactions/s, "
            f"{(end.statements - start.statements) / elapsed:.1f} statements/s",
            flush=True,
        )
        for http, session, task in workers:
            if task.done():
                await task  # a take has failed
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            (await http.post("/api/v1/work/bye", json={}, headers=session)).raise_for_status()


async def measure(options: argparse.Namespace, server: Postgres) -> None:
    url = server.url()
    settings = Settings(database_url=SecretStr(url))
    await migrate.upgrade(settings)
    environment = {"PENSTOCK_DATABASE_URL": url, "PENSTOCK_PORT": "0", "PENSTOCK_LOG_LEVEL": "error"}
    checkout, file, port = Path(__file__).parents[1], str(Path(__file__)), free_port()
    async with Client.connect(settings) as client:
        await register(client.session, load(Path(__file__)))
        _, token = await create_token(client.session, "bench", ["work"], by="bench")
        with ExitStack() as stack:
            address = f"http://127.0.0.1:{port}"
            gateway_pid = stack.enter_context(
                service(checkout, ["gateway", "--port", str(port)], environment)
            )
            stack.enter_context(service(checkout, ["executor"], environment))
            await until_it_listens(port)
            if options.idle:
                await server.execute("create extension pg_stat_statements")
                for count in (0, options.idle // 10, options.idle):
                    await idle(address, server, token, gateway_pid, count, options.seconds)
                return
            remote = {**environment, "PENSTOCK_DATABASE_URL": "", "PENSTOCK_TOKEN": token}
            words = ["worker", "--module", file, "--concurrency", str(options.slots)]
            stack.enter_context(service(checkout, [*words, "--routes", "direct"], environment))
            stack.enter_context(
                service(checkout, [*words, "--routes", "gateway", "--server", address], remote)
            )
            await compare(options, client)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=200, help="starts at 20/s in each turn")
    parser.add_argument("--count", type=int, default=3000, help="no-ops in each turn")
    parser.add_argument("--warm", type=int, default=500, help="no-ops before the first turn")
    parser.add_argument("--slots", type=int, default=64, help="slots of each worker")
    parser.add_argument("--idle", type=int, default=0, help="measure so many idle workers instead")
    parser.add_argument("--seconds", type=float, default=60.0, help="for which idle workers are measured")
    options = parser.parse_args()
    server = Postgres(**STATEMENTS if options.idle else {})
    try:
        asyncio.run(measure(options, server))
    finally:
        server.close()


if __name__ == "__main__":
    main()
