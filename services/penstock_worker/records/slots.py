"""The slots of a worker: the attempts that it holds, and the number that it may still claim."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from uuid import UUID


class Slots:
    """A bounded number of attempts at a time. The attempts of a batch share one. A cordoned worker has no free slot."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._held: dict[UUID, int] = {}
        self._batch_of: dict[UUID, object] = {}
        self._batch_sizes: Counter[object] = Counter()
        self._cordoned = False
        self.promised = 0
        """Slots that are kept for work that submits may assign to this worker, or have assigned and that has not arrived."""
        self.freed: list[Callable[[], None]] = []
        """Each is called after an attempt gave its slot back."""
        self.can_fill: Callable[[], bool] = lambda: False
        """A function that returns whether a batch that has a slot can take another attempt."""
        self._free = asyncio.Event()
        self._free.set()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def used(self) -> int:
        """Return the number of slots that attempts and batches take. The result can exceed the number of slots, since
        some batches only wait for one."""
        return len(self._held) - len(self._batch_of) + len(self._batch_sizes)

    @property
    def free(self) -> int:
        return 0 if self._cordoned else max(0, self.count - self.used)

    @property
    def can_claim(self) -> bool:
        """Return whether this worker can take an attempt: in a free slot, or in a batch that has a slot and room for one more."""
        return self.free > 0 or (not self._cordoned and self.can_fill())

    @property
    def unpromised(self) -> int:
        """Return the free slots that no permit promises to a submit."""
        return max(0, self.free - self.promised)

    @property
    def unheld(self) -> int:
        """Return the slots without an attempt, whether or not this worker is cordoned."""
        return max(0, self.count - self.used)

    @property
    def cordoned(self) -> bool:
        return self._cordoned

    def held(self) -> Mapping[UUID, int]:
        """Return the attempt numbers of the held executions, from claim to report. The mapping is a copy made in one
        step, since the heartbeat's thread reads it."""
        return self._held.copy()

    def take(self, execution: UUID, attempt: int, batch: object | None = None) -> None:
        """Hold an attempt, in the slot of its batch if it has one."""
        self._leave_batch(execution)
        self._held[execution] = attempt
        if batch is not None:
            self._batch_of[execution] = batch
            self._batch_sizes[batch] += 1
        self._empty.clear()
        self.tell()

    def give_back(self, execution: UUID, attempt: int) -> None:
        """Free the slot of an attempt, unless the next attempt of its execution has taken it over."""
        if self._held.get(execution) != attempt:
            return
        del self._held[execution]
        self._leave_batch(execution)
        if not self._held:
            self._empty.set()
        self.tell()
        for notify in self.freed:
            notify()

    def _leave_batch(self, execution: UUID) -> None:
        batch = self._batch_of.pop(execution, None) if self._batch_of else None
        if batch is None:
            return
        self._batch_sizes[batch] -= 1
        if not self._batch_sizes[batch]:
            del self._batch_sizes[batch]

    def cordon(self, cordoned: bool) -> None:
        """Cordon the worker, so that it has no free slots, or uncordon it."""
        self._cordoned = cordoned
        self.tell()

    def tell(self) -> None:
        """Wake the tasks that wait for room, if there is some."""
        if self.can_claim:
            self._free.set()
        else:
            self._free.clear()

    async def any_free(self, seconds: float) -> bool:
        """Wait at most `seconds` for a free slot, or for a batch that can take another attempt. Return whether there is one."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._free.wait()
        return self.can_claim

    async def all_free(self) -> None:
        """Wait until no slot is held."""
        await self._empty.wait()
