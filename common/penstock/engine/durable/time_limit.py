"""A limit on a block of a durable function, on the database's clock."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from types import TracebackType

from penstock.engine.durable.calls import Call
from penstock.engine.durable.core import Core, failure
from penstock.engine.durable.records import SLEEP, Record
from penstock.engine.durable.waits import sleep
from penstock.errors import DefinitionError


class TimeLimit:
    """A limit on the time of a block: `async with ctx.timeout("5m"): ...`. The instant at which it passes is recorded
    when the function first enters the block."""

    def __init__(self, core: Core, span: timedelta) -> None:
        self._core = core
        self._span = span
        self._task: asyncio.Task[object] | None = None
        self._call: Call | None = None
        self._record: Record | None = None
        self._cancelling = 0
        self._passed = False

    async def __aenter__(self) -> TimeLimit:
        if self._task is not None:
            raise DefinitionError(
                "the same time limit was entered twice",
                hint="Create another time limit: async with ctx.timeout(...).",
            )
        self._task, self._passed = asyncio.current_task(), False
        self._record = record = self._core.ask(SLEEP, "timeout")
        assert self._task is not None, "a task of the function"
        self._cancelling = self._task.cancelling()
        call = self._call = Call(record, partial(sleep, self._core, record, self._span))
        if record.told is not None:
            call.answer = _nothing
        call.on_told = self._pass
        # `penstock skip` may have ended the limit before it passed. Then the block has no limit.
        if record.told is not None or not record.final:
            self._core.deliveries.add(call)
        return self

    def _pass(self) -> None:
        self._passed = True
        assert self._task is not None, "a block that was entered"
        self._task.cancel("its time limit has passed")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, call, record = self._task, self._call, self._record
        assert task is not None, "a block that was entered"
        assert call is not None, "a block that was entered"
        assert record is not None, "a block that was entered"
        self._task = None
        if not self._passed:
            self._core.deliveries.cancel(call)
        elif task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise failure(
                record, "timeout", '{"message": "the block took longer than its limit"}', late=True
            ) from error


def _nothing() -> None:
    return None
