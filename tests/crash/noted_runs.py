"""An action that notes each of its runs in a file, also where the run counts for nothing."""

from __future__ import annotations

import asyncio
import os

from penstock import action, current


@action(pack="noted", max_recoveries=1000)
async def run(n: int, path: str) -> int:
    """Append a line with the number, the attempt and the process."""
    note(path, f"{n} {current().attempt} {os.getpid()}\n")
    await asyncio.sleep(0.01)
    return n


def note(path: str, line: str) -> None:
    with open(path, "a") as file:
        file.write(line)
