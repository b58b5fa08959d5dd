"""The response times of pages over many stored executions, and the delay until a change is on the screen.

python -m bench.pages --stored 100000 --rate 100
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from playwright.async_api import Browser, Page, async_playwright, expect
from pydantic import SecretStr

from bench.full_database import fill
from bench.servers import Postgres
from bench.services import service, until_it_listens
from penstock import Client, Settings, Workflow, action
from penstock.service.embedded.cluster import free_port
from penstock.store.schema import migrate
from tests.flows.installation import Installation

LOOKS = 100
"""Of each page."""
CHANGES = 20


@action(pack="bench")
async def noop(index: int) -> int:
    return index


FLOW = Workflow.model_validate(
    {
        "ref": "bench.flow",
        "tasks": [
            {"name": "a", "action": "bench.noop", "input": {"index": 1}},
            {"name": "b", "action": "bench.noop", "input": {"index": 2}, "needs": ["a"]},
            {"name": "c", "action": "bench.noop", "input": {"index": 3}, "needs": ["a"]},
        ],
    }
)


@asynccontextmanager
async def serving(url: str) -> AsyncIterator[str]:
    """Run an API in a process of its own, as users do. Yields its address."""
    port = free_port()
    settings = {"DATABASE_URL": url, "API_ACCESS": "open", "API_PORT": str(port), "PORT": "0"}
    with service(
        Path(__file__).parents[1], ["api"], {f"PENSTOCK_{name}": value for name, value in settings.items()}
    ):
        await until_it_listens(port)
        yield f"http://127.0.0.1:{port}"


async def load(client: Client, rate: int, stop: asyncio.Event) -> None:
    """So many starts a second, in tenths of one, until it is asked to stop."""
    n = 0
    while not stop.is_set():
        began = time.monotonic()
        await asyncio.gather(
            *(client.start("bench.noop", {"index": n + i}) for i in range(max(1, rate // 10)))
        )
        n += rate // 10
        await asyncio.sleep(max(0.0, 0.1 - (time.monotonic() - began)))


async def look(address: str, pages: dict[str, str]) -> None:
    """Prints half, and 19 of 20, of the milliseconds that each page takes."""
    async with httpx.AsyncClient(base_url=address, timeout=60) as http:
        for name, path in pages.items():
            milliseconds = []
            for _ in range(LOOKS):
                began = time.perf_counter()
                answer = await http.get(path, headers={"accept": "text/html"})
                milliseconds.append((time.perf_counter() - began) * 1000)
                answer.raise_for_status()
            cuts = statistics.quantiles(milliseconds, n=20)
            print(
                f"{name:24} p50 {cuts[9]:7.1f} ms   p95 {cuts[18]:7.1f} ms   {len(answer.content):>8,} bytes",
                flush=True,
            )


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Run the Chromium of this machine."""
    program = os.environ.get("PENSTOCK_TEST_CHROMIUM") or shutil.which("chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        yield browser
        await browser.close()


async def on_screen(address: str, client: Client) -> None:
    """Prints how long after the commit of a start it is in a list that somebody looks at."""
    async with chromium() as browser:
        await _changes_on_screen(await browser.new_page(), address, client)


async def _changes_on_screen(page: Page, address: str, client: Client) -> None:
    await page.goto(f"{address}/executions?find=bench.flow")
    await expect(page.locator("[data-pulse]")).to_have_text("live")
    milliseconds = []
    for _ in range(CHANGES):
        id = await client.start("bench.flow")
        began = time.perf_counter()
        await page.locator(f'a[href="/executions/{id}"]').wait_for()
        milliseconds.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0.7)
    cuts = statistics.quantiles(milliseconds, n=20)
    print(
        f"from commit to the screen: p50 {cuts[9]:.0f} ms, p95 {cuts[18]:.0f} ms, most {max(milliseconds):.0f} ms",
        flush=True,
    )


async def measure(options: argparse.Namespace, url: str) -> None:
    settings = Settings(database_url=SecretStr(url))
    await migrate.upgrade(settings)
    await fill(url, options.stored)
    overrides: dict[str, Any] = {"api_access": "open", "heartbeat_interval": 3.0, "stale_threshold": 15.0}
    async with Installation(url, None, **overrides) as house:
        await house.start(noop, FLOW)
        stop = asyncio.Event()
        loading = asyncio.create_task(load(house.client, options.rate, stop)) if options.rate else None
        await asyncio.sleep(options.seconds)
        run = await house.client.start("bench.flow")
        await house.client.result(run, timeout=30)
        async with Client.connect(settings) as client, serving(url) as address:
            await look(
                address,
                {
                    "overview": "/",
                    "executions": "/executions",
                    "executions, failed": "/executions?status=failed",
                    "executions, of an action": "/executions?action=bench.flow",
                    "one execution": f"/executions/{run}",
                    "workflow": "/actions/bench.flow",
                    "limits": "/limits",
                    "workers": "/workers",
                    "events": "/events",
                    "API: executions": "/api/v1/executions",
                },
            )
            await on_screen(address, client)
        stop.set()
        if loading is not None:
            await loading


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--stored", type=int, default=100_000, help="executions that have ended, over 20 days"
    )
    parser.add_argument("--rate", type=int, default=0, help="starts a second meanwhile")
    parser.add_argument("--seconds", type=float, default=10, help="of that before anybody looks")
    options = parser.parse_args()
    server = Postgres()
    try:
        asyncio.run(measure(options, server.url()))
    finally:
        server.close()


if __name__ == "__main__":
    main()
