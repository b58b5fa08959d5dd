"""How a loop runs: with jitter, again at once while there is more to do, and slower while it fails."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from penstock.database import Session, is_transient
from penstock.service import Parts
from penstock.settings import Settings

log = structlog.get_logger()

STATEMENT_TIMEOUT = "30s"


@dataclass(frozen=True, slots=True)
class Loop:
    """`turn` does one bounded batch and says whether there is more, or in how many seconds there will be. `every`, in
    seconds, is for those that do not know."""

    name: str
    every: Callable[[Settings], float]
    turn: Callable[[Parts, Session], Awaitable[bool | float]]


async def run(loop: Loop, parts: Parts, stop: asyncio.Event) -> None:
    """Until stopped. A turn that fails is logged and tried again, later and later up to a minute."""
    session = parts.database.session()
    failures = 0
    interval = loop.every(parts.settings)
    wait = random.uniform(0, min(interval, 5))
    while True:
        if wait:
            try:
                async with asyncio.timeout(wait):
                    await stop.wait()
            except TimeoutError:
                pass
        if stop.is_set():
            return
        try:
            more = await loop.turn(parts, session)
            failures = 0
            pause = more if more is not False else interval * random.uniform(0.8, 1.2)
            wait = 0 if pause is True else pause
        except Exception as error:
            failures += 1
            if not is_transient(error) or failures == 5:
                log.exception("loop.failed", loop=loop.name, failures=failures)
            wait = random.uniform(0.5, 1) * min(60.0, max(interval, 0.5) * 2 ** min(failures, 6))
