"""The slots of a worker: which attempts it holds, and how many more it may take."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from uuid import UUID


class Slots:
    """So many attempts at a time. One is held from its claim until its end is written down. Where all slots are held, that of
    an attempt whose code has ended is free for another one, while no more ends than there are slots wait to be written. A
    cordoned worker has no free slot."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._held: dict[UUID, int] = {}
        self._over: set[UUID] = set()
        """Those of them whose code has ended."""
        self._kept = 0
        self._cordoned = False
        self._free = asyncio.Event()
        self._free.set()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def free(self) -> int:
        """To be claimed for. What is claimed for is to be kept meanwhile."""
        if self._cordoned:
            return 0
        unkept = self.untouched - self._kept
        return unkept if unkept > 0 else max(0, self.not_running)

    @property
    def untouched(self) -> int:
        """Those for which nothing is held, not even an end to be written. While there is one, nobody waits for a slot."""
        return 0 if self._cordoned else max(0, self.count - len(self._held))

    @property
    def not_running(self) -> int:
        """Those in which no code runs, and that are not kept."""
        return self.count - len(self._held) + min(len(self._over), self.count) - self._kept

    @property
    def cordoned(self) -> bool:
        return self._cordoned

    def held(self) -> Mapping[UUID, int]:
        """Attempt numbers by execution, from its claim until it is reported: a copy, made in one step, as the heartbeat's
        thread asks for it."""
        return self._held.copy()

    def take(self, execution: UUID, attempt: int) -> None:
        self._held[execution] = attempt
        self._empty.clear()
        self._tell()

    def ended(self, execution: UUID) -> None:
        """The code of an attempt has ended."""
        if execution in self._held:
            self._over.add(execution)
            self._tell()

    @contextlib.contextmanager
    def keep(self, count: int) -> Iterator[None]:
        """Keep so many free slots while somebody claims for them, until the block ends: then they are taken at once."""
        self._kept += count
        self._tell()
        try:
            yield
        finally:
            self._kept -= count
            self._tell()

    def give_back(self, execution: UUID) -> None:
        """The end of an attempt is written down, or is not this worker's to write."""
        self._held.pop(execution, None)
        self._over.discard(execution)
        if not self._held:
            self._empty.set()
        self._tell()

    def cordon(self, cordoned: bool) -> None:
        """Have no free slot, or have them again."""
        self._cordoned = cordoned
        self._tell()

    def _tell(self) -> None:
        if self.free:
            self._free.set()
        else:
            self._free.clear()

    async def any_free(self, seconds: float) -> bool:
        """Wait so long at the most for a free slot; says whether there is one."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._free.wait()
        return self.free > 0

    async def all_free(self) -> None:
        """Wait until nothing is held."""
        await self._empty.wait()
