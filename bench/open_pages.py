"""Many pages that are open while much runs: how often they are shown anew, what that costs the API, and how soon a change is on
the screen of a real browser beside them.

python -m bench.open_pages --stored 100000 --rate 500 --open 200 --trees . ../before

Each checkout's API is asked in turn, beside the same PostgreSQL, executor and worker. The open pages do what `live.js` does: hold
the stream that the page names, and take the page anew 80 ms after something has changed, three times a second at the most.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import multiprocessing
import re
import time
from contextlib import ExitStack
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
from penstock.store import migrate

PAGES = ("/", "/executions", "/executions?status=failed", "/executions?action=bench.noop")
SOON, LEAST = 0.08, 0.3
WARM = 5.0
"""Seconds before anything is counted."""
STREAM = re.compile(rb'data-stream="([^"]*)"')


async def view(port: int, path: str, looks: list[float], until: asyncio.Event) -> None:
    """One open page. Notes how many seconds each look took."""
    changed = asyncio.Event()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    found = STREAM.search(await _get(reader, writer, path))
    assert found is not None
    listening = asyncio.create_task(_listen(port, html.unescape(found[1].decode()), changed))
    while not until.is_set():
        await changed.wait()
        changed.clear()
        await asyncio.sleep(SOON)
        began = time.monotonic()
        await _get(reader, writer, path)
        took = time.monotonic() - began
        looks.append(took)
        await asyncio.sleep(max(LEAST, 2 * took) - SOON)
    listening.cancel()
    writer.close()


async def _get(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> bytes:
    writer.write(_request(path, "text/html"))
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode())
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return await reader.readexactly(int(length))


async def _listen(port: int, path: str, changed: asyncio.Event) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_request(path, "text/event-stream"))
    while said := await reader.read(1 << 16):
        if b"event: " in said:
            changed.set()


def _request(path: str, accept: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: {accept}\r\nx-look: again\r\n\r\n".encode()


def viewers(
    port: int, count: int, counting: Event, over: Event, said: multiprocessing.Queue[list[float]]
) -> None:
    """All of them, in a process of their own."""

    async def run() -> None:
        until, looks = asyncio.Event(), list[float]()
        pages = [asyncio.create_task(view(port, PAGES[n % len(PAGES)], looks, until)) for n in range(count)]
        await asyncio.to_thread(counting.wait)
        looks.clear()
        await asyncio.to_thread(over.wait)
        said.put(list(looks))
        until.set()
        for page in pages:
            page.cancel()
        await asyncio.gather(*pages, return_exceptions=True)

    asyncio.run(run())


async def of_tree(tree: Path, settings: dict[str, str], client: Client, given: argparse.Namespace) -> None:
    port = free_port()
    spawn = multiprocessing.get_context("spawn")
    counting, over, said = spawn.Event(), spawn.Event(), spawn.Queue()
    with service(
        tree, ["api"], {**settings, "PENSTOCK_API_PORT": str(port), "PENSTOCK_API_ACCESS": "open"}
    ) as pid:
        await until_it_listens(port)
        looking = spawn.Process(target=viewers, args=(port, given.open, counting, over, said), daemon=True)
        looking.start()
        await asyncio.sleep(WARM)
        counting.set()
        before, began = sum(cpu_of(pid)), time.monotonic()
        print(f"{tree}: ", end="", flush=True)
        await on_screen(f"http://127.0.0.1:{port}", client)
        seconds, cpu = time.monotonic() - began, sum(cpu_of(pid)) - before
        over.set()
        looks = sorted(await asyncio.to_thread(said.get))
        looking.join(10)
    print(
        f"    {len(looks) / seconds:.0f} looks a second, half of them in {looks[len(looks) // 2] * 1000:.0f} ms; "
        f"the API takes {cpu / seconds:.0%} of a core, {cpu / len(looks) * 1000:.1f} ms a look",
        flush=True,
    )


async def measure(given: argparse.Namespace, url: str) -> None:
    settings = Settings(database_url=SecretStr(url))
    await migrate.upgrade(settings)
    await fill(url, given.stored)
    defined = Path(__file__).parent / "pages.py"
    environment = {"PENSTOCK_DATABASE_URL": url, "PENSTOCK_PORT": "0", "PENSTOCK_LOG_LEVEL": "error"}
    async with Client.connect(settings) as client:
        await register(client.session, loaded(defined))
        with ExitStack() as stack:
            for words in (["executor"], ["worker", "--module", str(defined)]):
                stack.enter_context(service(Path(__file__).parents[1], words, environment))
            stop = asyncio.Event()
            loading = asyncio.create_task(load(client, given.rate, stop))
            for _ in range(given.rounds):
                for tree in given.trees:
                    await of_tree(tree.resolve(), environment, client, given)
            stop.set()
            await loading


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--stored", type=int, default=100_000, help="executions that have ended, over 20 days"
    )
    parser.add_argument("--rate", type=int, default=500, help="starts a second meanwhile")
    parser.add_argument("--open", type=int, default=200, help="pages")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--trees", type=Path, nargs="+", default=[Path()], help="checkouts whose API is asked"
    )
    given = parser.parse_args()
    server = Postgres()
    try:
        asyncio.run(measure(given, server.url()))
    finally:
        server.close()


if __name__ == "__main__":
    main()
