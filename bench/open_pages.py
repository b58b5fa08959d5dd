"""Many pages that are open while much runs: how often they are shown anew, what that costs the API, and how soon a change is on
the screen of a real browser beside them.

python -m bench.open_pages --stored 100000 --rate 500 --open 200 --trees . ../before

Each checkout's API is asked in turn, beside the same PostgreSQL, executor and worker. The open pages hold their streams, as
browsers do. Then what they take from everybody else: as many no-ops as can be, `--count` of them at a time, with the pages open
and without them in turn; whoever holds the streams takes CPU of the same machine, which is told apart. Two rates differ by more
than the pages cost: so it is told, too, how much of the machine the API and its sessions of PostgreSQL take meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path

from pydantic import SecretStr

from bench.full_database import fill
from bench.http_starts import cpu_of
from bench.pages import load, on_screen
from bench.servers import Postgres
from bench.services import service, until_it_listens
from penstock import Client, Settings
from penstock import load as loaded
from penstock.operate.apply import register
from penstock.service.embedded.cluster import free_port
from penstock.store.schema import migrate

PAGES = ("/", "/executions", "/executions?status=failed", "/executions?action=bench.noop")
WARM = 5.0
"""Seconds before anything is counted."""
BATCH = 100
"""Starts of one call."""
PAGE = b"event: page"
LEFT = "select exists (select from live) as some"
SESSIONS = "select pid from pg_stat_activity where application_name ^@ 'api:'"


async def view(port: int, path: str, counter: list[int]) -> None:
    """One open page. Counts how often it is shown."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n\r\n"
    writer.write(request.encode())
    while chunk := await reader.read(1 << 18):
        counter[0] += chunk.count(PAGE)
    raise RuntimeError(f"{path} has ended")


def viewers(port: int, count: int, different: bool, total: Synchronized[int], stop: Event) -> None:
    """Open all pages, in a process of their own."""

    async def run() -> None:
        counter = [0]
        paths = [PAGES[n % len(PAGES)] for n in range(count)]
        if different:  # to the API each address is a page of its own
            paths = [f"{path}{'&' if '?' in path else '?'}viewer={n}" for n, path in enumerate(paths)]
        pages = [asyncio.create_task(view(port, path, counter)) for path in paths]
        while not stop.is_set():
            await asyncio.sleep(0.1)
            total.value = counter[0]
            for page in pages:
                if page.done():
                    page.result()
        for page in pages:
            page.cancel()
        await asyncio.gather(*pages, return_exceptions=True)

    asyncio.run(run())


@contextmanager
def opened(port: int, options: argparse.Namespace) -> Iterator[tuple[int, Synchronized[int]]]:
    """Open pages in a process. Yields its id, and the number of times that the pages were shown."""
    spawn = multiprocessing.get_context("spawn")
    shown_total, stop = spawn.Value("i", 0), spawn.Event()
    looking = spawn.Process(
        target=viewers, args=(port, options.open, options.different, shown_total, stop), daemon=True
    )
    looking.start()
    assert looking.pid is not None
    try:
        yield looking.pid, shown_total
    finally:
        stop.set()
        looking.join(10)


async def of_tree(tree: Path, settings: dict[str, str], client: Client, options: argparse.Namespace) -> None:
    port = free_port()
    with service(
        tree, ["api"], {**settings, "PENSTOCK_API_PORT": str(port), "PENSTOCK_API_ACCESS": "open"}
    ) as pid:
        await until_it_listens(port)
        stop = asyncio.Event()
        loading = asyncio.create_task(load(client, options.rate, stop))
        with opened(port, options) as (_, shown_total):
            await asyncio.sleep(WARM)
            shown_count, cpu, began = shown_total.value, sum(cpu_of(pid)), time.monotonic()
            print(f"{tree}: ", end="", flush=True)
            await on_screen(f"http://127.0.0.1:{port}", client)
            seconds, cpu = time.monotonic() - began, sum(cpu_of(pid)) - cpu
            shown_count = shown_total.value - shown_count
        stop.set()
        await loading
        print(
            f"    {shown_count / seconds:.0f} pages shown a second; the API takes {cpu / seconds:.1%} of a core, "
            f"{cpu / max(1, shown_count) * 1000:.2f} ms for each",
            flush=True,
        )
        await shares(port, pid, client, options)


async def shares(port: int, pid: int, client: Client, options: argparse.Namespace) -> None:
    """Measure the throughput that open pages cost. The second measurement has a larger database, so the order alternates."""
    await saturate(client, options.count)
    throughput_ratios: list[float] = []
    cpu_shares: list[float] = []
    for pair in range(options.pairs):
        if pair % 2:
            beside, share, summary = await beside_pages(port, pid, client, options)
            alone = await saturate(client, options.count)
        else:
            alone = await saturate(client, options.count)
            beside, share, summary = await beside_pages(port, pid, client, options)
        throughput_ratios.append(alone / beside)
        cpu_shares.append(share)
        print(
            f"    {options.count / alone:,.0f}/s without pages, {options.count / beside:,.0f}/s with them; {summary}",
            flush=True,
        )
    print(
        f"    medians: {statistics.median(throughput_ratios):.1%} of the throughput are left; the pages take "
        f"{statistics.median(cpu_shares):.1%} of the machine",
        flush=True,
    )


async def beside_pages(
    port: int, pid: int, client: Client, options: argparse.Namespace
) -> tuple[float, float, str]:
    """Return the seconds of the work while pages are open, their share of the machine meanwhile, and that share in words."""
    with opened(port, options) as (looking, shown_total):
        await asyncio.sleep(WARM)
        shown_count, of_pages, of_looking = shown_total.value, sum(cpu_of(pid)), sum(cpu_of(looking))
        of_sessions = await sessions_cpu(client)
        seconds = await saturate(client, options.count)
        of_database = sum(
            now - of_sessions.get(backend, now) for backend, now in (await sessions_cpu(client)).items()
        )
        of_pages, of_looking = sum(cpu_of(pid)) - of_pages, sum(cpu_of(looking)) - of_looking
        shown_count = shown_total.value - shown_count
    summary = (
        f"{shown_count / seconds:.0f} pages shown a second, for {of_pages / seconds:.1%} of a core, "
        f"{of_database / seconds:.1%} in PostgreSQL, and {of_looking / seconds:.1%} for who looks"
    )
    return seconds, (of_pages + of_database) / seconds / (os.cpu_count() or 1), summary


async def sessions_cpu(client: Client) -> dict[int, float]:
    """CPU seconds of each of PostgreSQL's processes that work for the API."""
    pids = [row["pid"] for row in await client.session.fetch(SESSIONS)]
    return {pid: sum(cpu_of(pid)) for pid in pids}


async def saturate(client: Client, count: int) -> float:
    """Return the seconds from the first start to the last end."""
    began = time.monotonic()
    batches = iter(range(0, count, BATCH))

    async def caller() -> None:
        for first in batches:
            await client.start_many("bench.noop", [{"index": first + n} for n in range(BATCH)])

    await asyncio.gather(caller(), caller())
    while (await client.session.fetch(LEFT))[0]["some"]:
        await asyncio.sleep(0.05)
    return time.monotonic() - began


async def measure(options: argparse.Namespace, url: str) -> None:
    settings = Settings(database_url=SecretStr(url))
    await migrate.upgrade(settings)
    await fill(url, options.stored)
    defined = Path(__file__).parent / "pages.py"
    environment = {"PENSTOCK_DATABASE_URL": url, "PENSTOCK_PORT": "0", "PENSTOCK_LOG_LEVEL": "error"}
    async with Client.connect(settings) as client:
        await register(client.session, loaded(defined))
        with ExitStack() as stack:
            for words in (["executor"], ["worker", "--module", str(defined)]):
                stack.enter_context(service(Path(__file__).parents[1], words, environment))
            for _ in range(options.rounds):
                for tree in options.trees:
                    await of_tree(tree.resolve(), environment, client, options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--stored", type=int, default=100_000, help="executions that have ended, over 20 days"
    )
    parser.add_argument("--rate", type=int, default=500, help="starts a second meanwhile")
    parser.add_argument("--open", type=int, default=200, help="pages")
    parser.add_argument(
        "--different", action="store_true", help="none of them has a rendering in common with another"
    )
    parser.add_argument("--count", type=int, default=50_000, help="no-ops of one measurement of throughput")
    parser.add_argument(
        "--pairs", type=int, default=3, help="measurements of throughput, without and with pages"
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--trees", type=Path, nargs="+", default=[Path()], help="checkouts whose API is asked"
    )
    options = parser.parse_args()
    server = Postgres()
    try:
        asyncio.run(measure(options, server.url()))
    finally:
        server.close()


if __name__ == "__main__":
    main()
