"""The time for which `penstock migrate` of a next release blocks transactions on the tables.

    python -m bench.migrating                           # on ten million finished: ten minutes, and 12 GB of disk
    python -m bench.migrating --archived 10000          # a short form of it

The next release has a column, a table and a function more, and every function in another text (tests/upgrade/releases.py).
Meanwhile somebody reads, and somebody writes, without pause: the longest that one of them took is what migrating holds up.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

import asyncpg

from bench.full_database import new_full_database
from bench.servers import Postgres
from penstock.store.schema import migrate as schema
from tests.upgrade.releases import migrate, next_release

READ = "select id from execution where finished_at is null limit 1"
WRITE = "update execution set attempt = attempt where id = gen_random_uuid()"
"""An update of no row. It takes the lock of the table that each update takes."""
MOST = 1.0
"""Seconds."""


async def longest(url: str, statement: str, finished: asyncio.Event) -> float:
    """Return the seconds of the slowest transaction."""
    connection, slowest = await asyncpg.connect(url), 0.0
    while not finished.is_set():
        began = time.perf_counter()
        await connection.execute(statement)
        slowest = max(slowest, time.perf_counter() - began)
        await asyncio.sleep(0.002)
    await connection.close()
    return slowest


async def held_up(url: str) -> tuple[float, float, float]:
    """Return the seconds of the migration, and those of the slowest reader and of the slowest writer meanwhile."""
    finished = asyncio.Event()
    waiting = [asyncio.create_task(longest(url, statement, finished)) for statement in (READ, WRITE)]
    with tempfile.TemporaryDirectory() as folder:
        release = next_release(Path(folder) / "next", schema.newest())
        began = time.perf_counter()
        await asyncio.to_thread(migrate, release, {**os.environ, "PENSTOCK_DATABASE_URL": url})
        seconds = time.perf_counter() - began
    finished.set()
    read, written = await asyncio.gather(*waiting)
    return seconds, read, written


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--archived", type=int, default=10_000_000)
    parser.add_argument("--database", help="the address of one that is filled already")
    options = parser.parse_args()
    server = await asyncio.to_thread(Postgres)
    try:
        url = options.database
        if url is None:
            url = await new_full_database(server, "migrating", options.archived)
        seconds, read, written = await held_up(url)
    finally:
        await asyncio.to_thread(server.close)
    print(
        f"migrating took {seconds:.1f} s; the slowest reader {read:.2f} s, the slowest writer {written:.2f} s"
    )
    if max(read, written) > MOST:
        raise SystemExit(f"more than {MOST:.0f} s")


if __name__ == "__main__":
    asyncio.run(main())
