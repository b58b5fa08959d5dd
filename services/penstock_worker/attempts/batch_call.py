"""The call of a function with the items of a batch, which ends the attempt of each item."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any
from uuid import UUID

from penstock.run.batch_calls import outcomes_of_items
from penstock.run.outcomes import Outcome
from penstock.run.run import Run


class BatchCall:
    """One call of a function for the items of the batch `run`. The asyncio task of each item awaits `outcome_of`."""

    def __init__(self, run: Run, work: Coroutine[Any, Any, Outcome]) -> None:
        """`work` runs the function, and returns the outcome of the call."""
        loop = asyncio.get_running_loop()
        self._outcomes: Mapping[UUID, asyncio.Future[Outcome]] = {
            item.event.execution_id: loop.create_future() for item in run.items or ()
        }
        self._left = 0
        self._is_ending = False
        self.task = asyncio.create_task(_outcomes_of(run, work))
        self.task.add_done_callback(self._settle)

    async def outcome_of(self, item: Run) -> Outcome:
        """Return the outcome of an item. Raises NoCapacity if the task executor had no room for the call. If the item's
        task is cancelled, the call goes on for the other items. When the last item is cancelled, the call is cancelled
        too, and this waits until it has ended."""
        try:
            return await self._outcomes[item.event.execution_id]
        except asyncio.CancelledError:
            await self.leave(item)
            raise
        finally:
            item.log.close()

    async def leave(self, item: Run) -> None:
        """Note that the task of an item was cancelled. With the last item, cancel the call and wait until it has ended."""
        item.cancelled = True
        self._left += 1
        # A worker that stops cancels all items in one step: let them all be counted first.
        await asyncio.sleep(0)
        if self._left < len(self._outcomes) or self.task.done():
            return
        if not self._is_ending:
            self._is_ending = True
            self.task.cancel()
        await asyncio.wait({self.task})

    def _settle(self, task: asyncio.Task[list[Outcome]]) -> None:
        """Give each item its outcome. An item that was cancelled awaits none."""
        if task.cancelled():
            for future in self._outcomes.values():
                future.cancel()
            return
        error = task.exception()
        for place, future in enumerate(self._outcomes.values()):
            if future.done():
                continue
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(task.result()[place])


async def _outcomes_of(run: Run, work: Coroutine[Any, Any, Outcome]) -> list[Outcome]:
    return outcomes_of_items(run, await work)
