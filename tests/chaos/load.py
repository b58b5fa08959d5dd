"""Work, submitted steadily; each piece with its right result written down before it is sent."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from penstock.client.client import Client
from penstock.errors import PenstockError
from tests.chaos import work

EACH_SECOND = (
    ("chaos.double", 90),
    ("chaos.square", 5),
    ("chaos.limited", 6),
    ("chaos.ordered", 10),
    ("chaos.flaky", 3),
    ("chaos.later", 2),
    ("chaos.flow", 2),
    ("chaos.story", 2),
    ("chaos.happened", 6),
    ("chaos.once", 3),
    ("chaos.once_in_a_thread", 1),
    ("chaos.once_in_a_process", 1),
)
CUSTOMERS = 12
"""Keys of a limit under which two run at a time."""
LINES = 5
"""Keys of a limit under which one runs at a time."""
TO_EACH_LINE = 2
"""So many are submitted a second, one after the other: a little less than it can take."""
LONG = 6.0
"""Seconds that every fifth piece of work takes which must run at most once: longer than a drain has patience."""


MOST_OPEN = 3000
"""Executions; while more are open, no others are submitted: a machine that is slow has less to do, not more to wait for."""


@dataclass
class Intent:
    """The submitted work: executions with their right results, events with their numbers."""

    results: dict[UUID, Any] = field(default_factory=dict)
    flows: set[UUID] = field(default_factory=set)
    stories: dict[UUID, int] = field(default_factory=dict)
    """Durable functions, and their numbers."""
    events: dict[UUID, int] = field(default_factory=dict)
    once: dict[UUID, int] = field(default_factory=dict)
    """What must run at most once, and its right result."""
    lines: dict[int, list[UUID]] = field(default_factory=lambda: {line: [] for line in range(LINES)})
    """What stands in each line, in the order in which it was submitted: one only when the one before was stored."""
    troubles: int = 0
    """Submits that gave an error and were sent again, with the same key."""
    foreign: Counter[str] = field(default_factory=Counter)
    """The same for errors that callers should not meet: those of the driver."""


class Load:
    """`share`: of what is submitted each second, but for what stands in lines."""

    def __init__(self, client: Client, share: float = 1.0) -> None:
        self.intent = Intent()
        self._client = client
        self._share = share
        self._n = 0
        self._stopped = False

    def stop(self) -> None:
        """No more than what is being submitted."""
        self._stopped = True

    async def run(self, seconds: float = math.inf) -> None:
        """Submit for so long. What was due while nothing could be submitted comes after that, as far as there is time."""
        began = time.monotonic()
        for tick in itertools.count():
            if self._stopped or tick + 1 > seconds:
                return
            await asyncio.sleep(max(0.0, began + tick - time.monotonic()))
            while await self._open() > MOST_OPEN and time.monotonic() < began + seconds:
                await asyncio.sleep(0.5)
            if time.monotonic() > began + seconds:
                return
            await asyncio.gather(
                *(self._submit(ref) for ref, count in EACH_SECOND for _ in range(self._due(count, tick))),
                *(self._line_up(line) for line in range(LINES)),
            )

    def _due(self, count: int, tick: int) -> int:
        """In this second, of so many a second."""
        return int(count * self._share * (tick + 1)) - int(count * self._share * tick)

    async def _open(self) -> int:
        """Count the open executions, as far as the database can be asked."""
        try:
            [[count]] = await self._client.session.fetch(
                "select count(*) from execution where finished_at is null"
            )
        except Exception:
            return 0
        return int(count)

    async def _submit(self, ref: str) -> None:
        n = self._n
        self._n += 1
        key = f"{ref} {n}"
        if ref == "chaos.happened":
            id = await self._certainly(lambda: self._client.publish(ref, {"n": n}, key=key))
            self.intent.events[id] = n
            return
        params, right = _piece(ref, n)
        id = await self._certainly(lambda: self._client.start(ref, params, key=key))
        if ref.startswith("chaos.once"):
            self.intent.once[id] = right
            return
        self.intent.results[id] = right
        if ref == "chaos.flow":
            self.intent.flows.add(id)
        if ref == "chaos.story":
            self.intent.stories[id] = n

    async def _line_up(self, line: int) -> None:
        for _ in range(TO_EACH_LINE):
            n = self._n
            self._n += 1
            params, key = {"n": n, "line": line}, f"chaos.in_line {n}"
            id = await self._certainly(partial(self._client.start, "chaos.in_line", params, key=key))
            self.intent.results[id] = n + line
            self.intent.lines[line].append(id)

    async def _certainly(self, submit: Callable[[], Awaitable[UUID]]) -> UUID:
        """Whatever went wrong, the same again under the same key: so callers are told to do."""
        while True:
            try:
                return await submit()
            except (PenstockError, OSError):
                self.intent.troubles += 1
            except Exception as error:
                self.intent.foreign[type(error).__name__] += 1
            await asyncio.sleep(0.3)


def _piece(ref: str, n: int) -> tuple[dict[str, Any], Any]:
    """Parameters, and the right result."""
    if ref == "chaos.flow":
        numbers = [n + item for item in range(work.ITEMS)]
        return {"numbers": numbers}, 2 * sum(numbers) + 2
    if ref == "chaos.ordered":
        return {"n": n, "customer": n % CUSTOMERS}, n + n % CUSTOMERS
    if ref.startswith("chaos.once"):
        return {"n": n, "seconds": LONG if random.Random(n).random() < 0.2 else 0.1}, n + 5
    right = {
        "chaos.double": 2 * n,
        "chaos.square": n * n,
        "chaos.limited": n + 1,
        "chaos.flaky": n + 2,
        "chaos.later": n + 3,
        "chaos.story": work.STEPS * n + sum(range(work.STEPS)) + 2 * n + 9,
    }
    return {"n": n}, right[ref]
