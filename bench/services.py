"""Services of a checkout in processes of their own, for measurements that are about them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

READY = 60.0
"""Seconds for an API to listen."""


@contextmanager
def service(tree: Path, words: list[str], settings: dict[str, str]) -> Iterator[int]:
    """Run a command of a checkout in a process of its own. Yields its pid."""
    paths = os.pathsep.join(str(tree / part) for part in ("common", "services", ""))
    command = [sys.executable, "-c", "from penstock.cli import main; main()", *words]
    started = subprocess.Popen(command, env={**os.environ, **settings, "PYTHONPATH": paths}, cwd=tree)
    try:
        yield started.pid
    finally:
        started.terminate()
        started.wait(30)


async def until_it_listens(port: int) -> None:
    async with asyncio.timeout(READY):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                return writer.close()
            except OSError:
                await asyncio.sleep(0.05)
