"""Actions under limits, which write down when they really ran."""

from __future__ import annotations

import asyncio
import os
import time

from penstock import Limit, action

LEDGER = "TEST_LIMITS_LEDGER"
"""Names the file: lines `+ key pid execution attempt time` and `- ...`, appended by whoever runs something."""
LIMITS = (1, 5, 100)


async def note(key: str) -> None:
    from penstock import current

    run = current()
    words = f"{key} {os.getpid()} {run.execution_id} {run.attempt}"
    file = os.open(os.environ[LEDGER], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"+ {words} {time.monotonic():.6f}\n".encode())
        await asyncio.sleep(0.001)
    finally:
        os.write(file, f"- {words} {time.monotonic():.6f}\n".encode())
        os.close(file)


@action(pack="narrow", max_recoveries=1000, limits=[Limit(1, by="key")])
async def at_1(key: str) -> None:
    await note(key)


@action(pack="narrow", max_recoveries=1000, limits=[Limit(5, by="key")])
async def at_5(key: str) -> None:
    await note(key)


@action(pack="narrow", max_recoveries=1000, limits=[Limit(100, by="key")])
async def at_100(key: str) -> None:
    await note(key)


ACTIONS = {1: at_1, 5: at_5, 100: at_100}
