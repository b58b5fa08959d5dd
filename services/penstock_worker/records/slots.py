"""The slots of a worker: the attempts that it holds, and the number that it may still claim."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from uuid import UUID


class Slots:
    """A bounded number of attempts at a time. A cordoned worker has no free slot."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._held: dict[UUID, int] = {}
        self._cordoned = False
        self.promised = 0
        """Slots that are kept for work that submits may assign to this worker, or have assigned and that has not arrived."""
        self.freed: Callable[[], None] = lambda: None
        """Called after an attempt gave its slot back."""
        self._free = asyncio.Event()
        self._free.set()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def free(self) -> int:
        return 0 if self._cordoned else max(0, self.count - len(self._held))

    @property
    def unpromised(self) -> int:
        """Return the free slots that no permit promises to a submit."""
        return max(0, self.free - self.promised)

    @property
    def unheld(self) -> int:
        """Return the slots without an attempt, whether or not this worker is cordoned."""
        return max(0, self.count - len(self._held))

    @property
    def cordoned(self) -> bool:
        return self._cordoned

    def held(self) -> Mapping[UUID, int]:
        """Return the attempt numbers of the held executions, from claim to report. It is a copy made in one step, as
        the heartbeat's thread reads it."""
        return self._held.copy()

    def take(self, execution: UUID, attempt: int) -> None:
        self._held[execution] = attempt
        self._empty.clear()
        self._tell()

    def give_back(self, execution: UUID) -> None:
        self._held.pop(execution, None)
        if not self._held:
            self._empty.set()
        self._tell()
        self.freed()

    def cordon(self, cordoned: bool) -> None:
        """Offer no free slots, or offer them again."""
        self._cordoned = cordoned
        self._tell()

    def _tell(self) -> None:
        if self.free:
            self._free.set()
        else:
            self._free.clear()

    async def any_free(self, seconds: float) -> bool:
        """Wait at most `seconds` for a free slot. Return whether there is one."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._free.wait()
        return self.free > 0

    async def all_free(self) -> None:
        """Wait until no slot is held."""
        await self._empty.wait()
