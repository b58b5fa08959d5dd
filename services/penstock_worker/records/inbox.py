"""The attempts that a worker has claimed and has not begun: from all that claim to the one that runs them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from penstock.attempts.owned_attempt import OwnedAttempt


class Inbox:
    """A queue of attempts. Their slots are taken before they are put in, so that it holds no more than there are slots."""

    def __init__(self) -> None:
        self._attempts: deque[OwnedAttempt] = deque()
        self._arrived = asyncio.Event()

    def put(self, attempts: Iterable[OwnedAttempt]) -> None:
        """Add attempts, in their order."""
        self._attempts.extend(attempts)
        if self._attempts:
            self._arrived.set()

    def take_all(self) -> list[OwnedAttempt]:
        """Return what is in the queue, and empty it."""
        attempts = list(self._attempts)
        self._attempts.clear()
        self._arrived.clear()
        return attempts

    async def wait(self) -> None:
        """Wait until there is an attempt."""
        await self._arrived.wait()
