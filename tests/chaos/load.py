"""Work, submitted steadily; each piece with its right result written down before it is sent."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from penstock.client.client import Client
from penstock.errors import PenstockError
from tests.chaos import work

EACH_SECOND = (
    ("chaos.double", 90),
    ("chaos.square", 5),
    ("chaos.limited", 6),
    ("chaos.ordered", 4),
    ("chaos.flaky", 3),
    ("chaos.later", 2),
    ("chaos.flow", 2),
    ("chaos.happened", 6),
)


MOST_OPEN = 3000
"""Executions; while more are open, no others are submitted: a machine that is slow has less to do, not more to wait for."""


@dataclass
class Intent:
    """What was submitted: executions with their right results, events with their numbers."""

    results: dict[UUID, Any] = field(default_factory=dict)
    flows: set[UUID] = field(default_factory=set)
    events: dict[UUID, int] = field(default_factory=dict)
    troubles: int = 0
    """Submits that gave an error and were sent again, with the same key."""
    foreign: Counter[str] = field(default_factory=Counter)
    """The same for errors that callers should not meet: those of the driver."""


class Load:
    def __init__(self, client: Client) -> None:
        self.intent = Intent()
        self._client = client
        self._n = 0

    async def run(self, seconds: float) -> None:
        """Submit for so long. What was due while nothing could be submitted comes after that, as far as there is time."""
        began = time.monotonic()
        for tick in range(int(seconds)):
            await asyncio.sleep(max(0.0, began + tick - time.monotonic()))
            while await self._open() > MOST_OPEN and time.monotonic() < began + seconds:
                await asyncio.sleep(0.5)
            if time.monotonic() > began + seconds:
                return
            await asyncio.gather(*(self._submit(ref) for ref, count in EACH_SECOND for _ in range(count)))

    async def _open(self) -> int:
        """How many executions are open, as far as anybody can be asked."""
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
        self.intent.results[id] = right
        if ref == "chaos.flow":
            self.intent.flows.add(id)

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
        return {"n": n, "customer": n % 5}, n + n % 5
    right = {
        "chaos.double": 2 * n,
        "chaos.square": n * n,
        "chaos.limited": n + 1,
        "chaos.flaky": n + 2,
        "chaos.later": n + 3,
    }
    return {"n": n}, right[ref]
