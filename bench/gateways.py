"""A Python worker that calls a gateway, beside one with a session with the database; and what idle workers cost a gateway.

python -m bench.gateways --rounds 3
python -m bench.gateways --idle 1000

In each round both workers are measured in turn, on the same PostgreSQL, which also carries the messages. Ratios are of medians.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
import uuid
from contextlib import ExitStack
from pathlib import Path

import asyncpg
import httpx
from pydantic import SecretStr

from bench.http_starts import cpu_of
from bench.servers import Postgres
from bench.services import service, until_it_listens
from penstock import Client, Settings, action, load
from penstock.operate.access import create_token
from penstock.operate.apply import register
from penstock.service.embedded.cluster import free_port
from penstock.store.schema import migrate

KINDS = ("direct", "gateway")
RATE = 20.0


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


async def idle(url: str, database: str, token: str, pid: int, count: int, seconds: float) -> None:
    """Print what `count` workers that wait for work cost their gateway."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=90) as http:

        async def work(number: int) -> None:
            hello = {"name": f"idle-{number}", "language": "python", "sdk": "bench", "routes": ["gateway"]}
            body = {**hello, "actions": [{"ref": "bench.gateway"}], "slots": 1}
            welcome = (await http.post("/api/v1/work/hello", json=body)).raise_for_status().json()
            session = {"penstock-session": welcome["session"]}
            while True:
                take = {"request": str(uuid.uuid4()), "slots": 1, "wait": 60.0}
                (await http.post("/api/v1/work/take", json=take, headers=session)).raise_for_status()

        workers = []
        for number in range(count):
            workers.append(asyncio.create_task(work(number)))
            await asyncio.sleep(60.0 / max(count, 60))  # their takes do not end all at once
        connection = await asyncpg.connect(database)
        read = "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()"
        cpu, commits = sum(cpu_of(pid)), await connection.fetchval(read)
        began = time.monotonic()
        await asyncio.sleep(seconds)
        elapsed = time.monotonic() - began
        cpu, commits = sum(cpu_of(pid)) - cpu, await connection.fetchval(read) - commits
        print(
            f"{count} idle workers: {100 * cpu / elapsed:.2f} % of a core, {commits / elapsed:.1f} transactions/s",
            flush=True,
        )
        assert not [task for task in workers if task.done()], "a worker has ended"
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await connection.close()


async def measure(options: argparse.Namespace, url: str) -> None:
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
                for count in (0, options.idle // 10, options.idle):
                    await idle(address, url, token, gateway_pid, count, options.seconds)
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
    server = Postgres()
    try:
        asyncio.run(measure(options, server.url()))
    finally:
        server.close()


if __name__ == "__main__":
    main()
