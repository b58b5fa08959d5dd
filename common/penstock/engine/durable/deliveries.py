"""The order in which results are delivered to a durable function: one at a time, whenever all of its tasks wait.

Each result gets the next number once it is known, and the number is recorded with it. Results with a recorded number
are delivered in that order. Afterwards, other results are delivered in the order in which they became available, and
new calls begin.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from datetime import datetime
from typing import Any

import orjson

from penstock.engine.durable.attempt_over import Stopped
from penstock.engine.durable.calls import Call
from penstock.engine.durable.journal import CHANGED
from penstock.engine.durable.open_calls import OpenCalls, Writer
from penstock.engine.durable.records import CANCELLED, COMPLETED, END, TOLD, History, Key, Record
from penstock.errors import DefinitionError, PenstockError, ReplayMismatch

BATCH = 100
"""The number of results that are delivered before the worker's loop has its turn."""
END_KEY = Key(f"{END}/run", 1)
"""The key of the request that a run ends. No step has it: the name of a step has no slash."""


class Deliveries(OpenCalls):
    """The runner of an attempt's function, which delivers the results of its calls."""

    def __init__(self, core: Writer, history: History) -> None:
        super().__init__(core, history)
        self.ends_as = history.ends_as
        """What the run is to end as, until its function is told."""
        self.end_reason, self.end_status = "", "cancelled"
        """The message with which the function was ended. `asyncio.gather` drops the message of a cancellation."""
        end = next((record for record in history.records.values() if record.kind == END), None)
        self._end_at = None if end is None else end.told
        if end is not None and end.result is not None:
            self.ends_as = orjson.loads(end.result)
        self._root: asyncio.Task[Any] | None = None
        self._until: Callable[[], bool] = bool
        self._finished: asyncio.Future[DefinitionError | None] | None = None
        self._scheduled = False
        """Whether the tasks of the function are about to run."""

    # -- the run of the function --------------------------------------------------------------------------------------

    async def run(self, root: asyncio.Task[Any], until: Callable[[], bool]) -> DefinitionError | None:
        """Run the function, and deliver the results of its calls, until `until` returns True. Return None then, or the
        error of a deadlock. Raises AttemptOver if the attempt ends before."""
        self._root, self._until = root, until
        self._finished = self._outside.create_future()
        self.wake()
        try:
            deadlock = await self._finished
        finally:
            self._finished = None
        self._core.waiting.check()
        return deadlock

    @property
    def idle(self) -> bool:
        """Return true if all tasks of the function wait for a delivery. Once the function has ended, the attempt
        ends."""
        return not self._scheduled and self._finished is not None and not self._finished.done()

    def wake(self) -> None:
        """Deliver the results that are known, in a callback of their own. No other task runs while the function's tasks
        run."""
        if not self._scheduled:
            self._scheduled = True
            self._outside.call_soon(self._turn)

    def end_attempt(self) -> None:
        """Mark the attempt as over, and run the function once more. It sees in `Waiting.verdict` how the attempt ends."""
        if not self.attempt_over.done():
            self.attempt_over.set_result(None)
        self.wake()

    def _turn(self) -> None:
        self._scheduled = False
        finished = self._finished
        if finished is None or finished.done():
            return
        try:
            for _ in range(BATCH):
                if self._core.waiting.verdict is None:
                    self._core.loop.run()
                if self._core.waiting.verdict is not None or self._until():
                    finished.set_result(None)
                    return
                # A deadlock takes precedence over a request to end: every attempt of a run has to find it at the same
                # call.
                if not self._open:
                    finished.set_result(_deadlock())
                    return
                if not self._tell():
                    self._core.waiting.changed()
                    return
            self.wake()
        except Exception as error:
            self._core.waiting.end(Stopped(error))

    def end_tasks(self) -> None:
        """End the tasks of the function where they wait, and the tasks that work for them, because the attempt is
        over."""
        for call in list(self._open):
            if call.task is not None:
                call.task.cancel()
            if call.future is not None and not call.future.done():
                call.future.set_result(None)
        self._open.clear()
        loop = self._core.loop
        try:
            loop.run()
            for _ in range(10):
                if not (tasks := loop.open_tasks()):
                    break
                for task in tasks:
                    task.cancel()
                loop.run()
        except PenstockError:
            """A task that never waits: it is left as it is."""
        loop.clear()

    def forget(self) -> None:
        """Drop the references between the objects of the attempt, so that no reference cycle keeps them alive."""
        self._numbered.clear()
        self._ready.clear()
        self._new.clear()
        self._expected.clear()
        self._open.clear()
        self._root = None
        self._until = bool
        self.signals.forget()
        del self._core

    # -- deliveries to the function -----------------------------------------------------------------------------------

    def _tell(self) -> bool:
        """Deliver the next result. Return whether there was one."""
        call = self._first_numbered()
        recorded = self.signals.recorded()
        of_call = None if call is None else call.number
        of_signal = None if recorded is None else recorded[0]
        numbers = [number for number in (of_call, of_signal, self._end_at) if number is not None]
        if not numbers:
            return self._go_live()
        number = min(numbers)
        if number == self._end_at:
            self._tell_end(number)
        elif recorded is not None and number == recorded[0]:
            self._deliver_signal(recorded[1], number)
        elif call is not None and call.answer is not None:
            heapq.heappop(self._numbered)
            self._deliver(call, number)
        else:
            # The result with this number is still being written. Calls that do not depend on it can begin.
            if number > self._recorded:
                self._begin(deciding=call is not None and call.decision is not None)
            return False
        return True

    def _first_numbered(self) -> Call | None:
        while self._numbered:
            number, _, call = self._numbered[0]
            if call in self._open and call.number == number:
                return call
            heapq.heappop(self._numbered)
        return None

    def _go_live(self) -> bool:
        """Deliver a new result, because all recorded results were delivered. Return False if there is none yet."""
        self._core.journal.forget_unasked()
        if self.ends_as is not None:
            self._tell_end(self._next())
            return True
        sent, now = self.signals.earliest(), self._core.clock()
        self._ready = [call for call in self._ready if call in self._open]
        self._ready.sort(key=lambda call: call.instant or now)
        call = self._ready[0] if self._ready else None
        instants = [*([] if sent is None else [sent[0]]), *([] if call is None else [call.instant or now])]
        if instants and self._is_expected(before=min(instants)):
            self._begin()
            return False
        if sent is not None and (call is None or sent[0] <= (call.instant or now)):
            self._deliver_signal(sent[1], self._next())
        elif call is not None and call.answer is None:
            self._decide_deadlines(before=None if sent is None else sent[0])
        elif call is not None:
            self._ready.remove(call)
            call.number = self._next()
            self._deliver(call, call.number)
        else:
            self._begin()
            self._check_waits()
            return False
        return True

    def _decide_deadlines(self, before: datetime | None) -> None:
        """Record the deadlines that have passed, up to the first other result. `before`: the instant of the next
        signal."""
        while self._ready and (call := self._ready[0]).answer is None:
            assert call.instant is not None, "a deadline that has passed"
            assert call.decision is not None, "a deadline that has passed"
            if (before is not None and before <= call.instant) or self._is_expected(before=call.instant):
                return
            self._ready.remove(call)
            call.decision.set_result(self.reserve(call))

    def _check_waits(self) -> None:
        """Check that an open call can still end. Raises ReplayMismatch if none can."""
        if any(call.task is not None or call.number is not None for call in self._open):
            return
        for call in self._open:
            if call.record is not None and call.record.status == CANCELLED:
                raise ReplayMismatch(
                    f"the function waits for {call.record.kind} {call.record.key}, and its run has cancelled it",
                    hint=CHANGED,
                )

    def _deliver(self, call: Call, number: int) -> None:
        if call.serves:
            self._serve(call, number)
            return
        record = call.record
        if record is not None:
            self._note_failure(record, number, dropped=call.cancelling)
        if record is not None and record.told != number:
            record.told = number
            cancelled = call.cancelling and not record.final
            if cancelled:
                record.status = CANCELLED
            self._core.unwritten[record.key] = record if cancelled else _mark(record, number)
        self._told(call, number)

    def _serve(self, call: Call, number: int) -> None:
        assert call.signal is not None, "a call that waits for a signal"
        call.serves, call.answer, call.number = False, None, None
        served = self._deliver_signal(call.signal, number)
        # The deadline of `call` has passed and found a signal for another call, so `call` looks again.
        if served is not call:
            self._start(call)

    def _deliver_signal(self, name: str, number: int) -> Call:
        call, row = self.signals.take(name)
        if row.told is None:
            row.told = number
            self._core.unwritten[row.key] = _mark(row, number)
        call.answer = self._core.answer_of(row)
        self._told(call, number)
        return call

    def _told(self, call: Call, number: int) -> None:
        self._core.journal.told = number
        self._open.pop(call, None)
        call.told = True
        if call.signal is not None:
            self.signals.leave(call.signal, call)
            if call.task is not None:
                call.task.cancel()
        if call.on_told is not None:
            call.on_told()
        if call.future is not None and not call.future.done():
            call.future.set_result(None)

    # -- the end of the run -------------------------------------------------------------------------------------------

    def end_as(self, status: str) -> None:
        """Deliver the request that the run ends to the function, once, wherever the function is at present."""
        if self._end_at is None and not self.end_reason:
            self.ends_as = status
            if not self.asked_to_end.done():
                self.asked_to_end.set_result(None)
            self.wake()

    @property
    def ending(self) -> bool:
        """Return whether the end of the run is requested, or was delivered to the function."""
        return self.ends_as is not None or bool(self.end_reason)

    def _tell_end(self, number: int) -> None:
        ends_as, self.ends_as = self.ends_as or "cancelled", None
        if self._end_at is None:
            status = orjson.dumps(ends_as).decode()
            self._core.unwritten[END_KEY] = Record(END_KEY, 0, END, COMPLETED, status, told=number)
        self._end_at = None
        self._core.journal.told = number
        self.end_status, self.end_reason = ends_as, f"the run was asked to end as {ends_as}"
        if self._root is not None:
            self._root.cancel(self.end_reason)


def _deadlock() -> DefinitionError:
    return DefinitionError(
        "the asyncio tasks of the function only wait for each other, so none of them can continue",
        hint="Look for an asyncio queue, lock or event that no running task releases or sets.",
    )


def _mark(record: Record, number: int) -> Record:
    """Return a write that records only when the result of `record` was delivered."""
    return Record(record.key, record.position, record.kind, TOLD, told=number)
