"""Group commit: callers that submit at the same time share one transaction, and each waits for its own answer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

Write = Callable[[Sequence[Item]], Awaitable[Sequence[Answer | Exception]]]


class GroupCommit(Generic[Item, Answer]):
    """A collector of items that are submitted while a write is under way, and are then written together. No write
    waits for more items. `write` returns an answer or an error for each item, in order. If it raises, the group is
    halved until the faulty item is alone. Cancelling one caller does not affect the others."""

    def __init__(self, write: Write[Item, Answer], *, max_items: int = 500, writers: int = 1) -> None:
        self._write = write
        self._max_items = max_items
        self._pending: deque[tuple[Item, asyncio.Future[Answer]]] = deque()
        self._writers = writers
        self._writing = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, item: Item) -> Answer:
        """Return the answer for `item`, once it is committed."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._pending.append((item, future))
        if self._writing < self._writers:
            self._writing += 1
            task = asyncio.create_task(self._drain(), name="coalesce")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _drain(self) -> None:
        await asyncio.sleep(0)  # callers that are ready in this turn of the loop join the group
        try:
            while self._pending:
                group = [self._pending.popleft() for _ in range(min(self._max_items, len(self._pending)))]
                await self._settle(group)
        finally:
            # No await comes between the check that nothing is pending and this line. So a caller that submits later
            # sees that no writer runs, and starts one.
            self._writing -= 1

    async def _settle(self, group: list[tuple[Item, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self._write([item for item, _ in group])
        except Exception as error:
            if len(group) == 1:
                if not group[0][1].done():
                    group[0][1].set_exception(error)
                return
            middle = len(group) // 2
            await self._settle(group[:middle])
            await self._settle(group[middle:])
            return
        for (_, future), answer in zip(group, answers, strict=True):
            if future.done():
                continue  # its caller was cancelled, and the item is stored all the same
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
