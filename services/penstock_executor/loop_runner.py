"""The runner of a loop: it adds jitter, repeats at once while there is more to do, and slows down after failures."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import structlog

from penstock.service.assembly import Parts
from penstock.settings import Settings
from penstock.store.session.database import Session, is_transient

log = structlog.get_logger()

LONGEST = 60.0
"""The timeout in seconds of a statement of a loop. A statement that takes longer probably waits for a lock, and is
retried later."""


Turn = Callable[[], Awaitable[bool | float]]
"""One bounded batch of a loop. A turn returns True if there is more, the seconds until there is more, or False for a
pause of the loop's usual length."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop. `name` is that of its module, and appears in logs and metrics. `turn` does one bounded batch, and returns
    what a Turn returns; the usual pause is about `every` seconds. A loop with turns that share something has `turns` instead:
    a context with its Turn. Without `opens` its session reads encrypted values as they are stored."""

    name: str
    every: Callable[[Settings], float]
    turn: Callable[[Parts, Session], Awaitable[bool | float]] | None = None
    opens: bool = True
    turns: Callable[[Parts, Session], AbstractAsyncContextManager[Turn]] | None = None

    def context(self, parts: Parts, session: Session) -> AbstractAsyncContextManager[Turn]:
        """Return the context of the loop's turns."""
        if self.turns is not None:
            return self.turns(parts, session)
        assert self.turn is not None, "a loop has a turn, or turns"
        return nullcontext(partial(self.turn, parts, session))


async def run_loop(loop: Loop, parts: Parts, stop: asyncio.Event, woken: asyncio.Event | None = None) -> None:
    """Take turns until stopped. When `woken` is set, the next turn is at once. A turn that fails is logged and
    retried, with a backoff of up to a minute."""
    session = parts.database.session(timeout=LONGEST, opens=loop.opens)
    async with loop.context(parts, session) as turn:
        await _take_turns(loop, turn, parts, stop, woken)


async def _take_turns(
    loop: Loop, turn: Turn, parts: Parts, stop: asyncio.Event, woken: asyncio.Event | None
) -> None:
    seconds = parts.metrics.loop_seconds.labels(loop.name)
    failed = parts.metrics.loop_failures.labels(loop.name)
    failures = 0
    interval = loop.every(parts.settings)
    wait = random.uniform(0, min(interval, 5))
    while True:
        if wait:
            await _sleep(wait, stop, woken)
        if stop.is_set():
            return
        if woken is not None:
            woken.clear()
        try:
            with seconds.time():
                outcome = await turn()
            failures = 0
            pause = outcome if outcome is not False else interval * random.uniform(0.8, 1.2)
            wait = 0 if pause is True else pause
        except Exception as error:
            failures += 1
            failed.inc()
            if not is_transient(error) or failures == 5:
                log.exception("loop.failed", loop=loop.name, failures=failures)
            wait = random.uniform(0.5, 1) * min(60.0, max(interval, 0.5) * 2 ** min(failures, 6))


async def _sleep(seconds: float, *ends: asyncio.Event | None) -> None:
    """Sleep for `seconds`, or until one of these events is set."""
    waits = [asyncio.ensure_future(end.wait()) for end in ends if end is not None]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
