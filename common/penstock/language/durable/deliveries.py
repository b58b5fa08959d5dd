"""The order in which results are told to a durable function: one at a time, whenever all of its tasks wait.

Each result gets the next number when it is known, and the number is recorded with it. What has a number already is told in that
order. Only when nothing of that is left, other results are told, by the instant at which they were there, and what is not
recorded begins."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable
from contextvars import copy_context
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from penstock.errors import PenstockError, ReplayMismatch
from penstock.language.durable.attempt_over import AttemptOver, Stopped
from penstock.language.durable.calls import Answer, Call
from penstock.language.durable.journal import CHANGED
from penstock.language.durable.records import CANCELLED, COMPLETED, END, FAILED, STEP, TOLD, History, Key, Record
from penstock.language.durable.signal_lines import SignalLines

if TYPE_CHECKING:
    from penstock.language.durable.core import Core

BATCH = 100
"""Results that are told before the worker's loop has its turn."""
END_KEY = Key(END, 1)


class Deliveries:
    """`signals` are those that were sent, and the calls that wait for them."""

    def __init__(self, core: Core, history: History) -> None:
        self._core = core
        self._outside = asyncio.get_running_loop()
        self._recorded = max((record.told or 0 for record in history.records.values()), default=0)
        self._last = self._recorded
        self._numbered: list[tuple[int, int, Call]] = []
        self._ready: list[Call] = []
        self._new: list[Call] = []
        self._open: dict[Call, None] = {}
        self._cancels: list[tuple[Record, UUID | None]] = [
            (record, child.id)
            for key, child in history.children.items()
            if not child.ended and (record := history.records.get(key)) and record.status == CANCELLED
        ]
        core.open_children.update(child for _, child in self._cancels if child is not None)
        self.signals = SignalLines(history.records)
        self.ends_as = history.ends_as
        """What the run is to end as, until its function is told."""
        end = history.records.get(END_KEY)
        self._end_at = None if end is None else end.told
        self._failed: dict[Key, int] = {}
        self._dropped: dict[Key, int] = {}
        self._root: asyncio.Task[Any] | None = None
        self._until: Callable[[], bool] = bool
        self._finished: asyncio.Future[None] | None = None
        self.scheduled = False
        """Whether the tasks of the function are about to run."""
        self.closing = False
        """The function has failed and is tried again: functions of steps that run are let finish, and nothing is told."""

    # -- running the function -----------------------------------------------------------------------------------------

    async def run(self, root: asyncio.Task[Any], until: Callable[[], bool]) -> None:
        """Run the function, and tell it what it waits for, until this is so. Raises AttemptOver where the attempt ends before."""
        self._root, self._until = root, until
        self._finished = self._outside.create_future()
        self.wake()
        try:
            await self._finished
        finally:
            self._finished = None
        self._core.waiting.check()

    def wake(self) -> None:
        """Something is known that may be told. The tasks run in a callback of their own: no other task runs around them."""
        if not self.scheduled:
            self.scheduled = True
            self._outside.call_soon(self._turn)

    def _turn(self) -> None:
        self.scheduled = False
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
                if not self._tell():
                    self._core.waiting.changed()
                    return
            self.wake()
        except Exception as error:
            self._core.waiting.end(Stopped(error))
            if not finished.done():
                finished.set_result(None)

    def end_tasks(self) -> None:
        """The attempt is over: the tasks of the function end where they wait, and what works for them ends as well."""
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
        """Hold nothing more, so that no circle of objects is left."""
        self._numbered.clear()
        self._ready.clear()
        self._new.clear()
        self._open.clear()
        self._root = None
        self._until = bool
        self.signals.forget()
        del self._core

    # -- calls --------------------------------------------------------------------------------------------------------

    async def result_of(self, call: Call) -> Any:
        """Wait until the result of a call is told, and return it, or raise its error. Called by a task of the function."""
        waiting = self._core.waiting
        waiting.check()
        call.future = self._core.loop.create_future()
        self.add(call)
        try:
            await call.future
        except asyncio.CancelledError:
            waiting.check()
            if call.told:
                raise
            if call.record is None or call.record.kind != STEP:
                self.cancel(call)
                raise
            await self._end_of(call)
            raise
        waiting.check()
        assert call.answer is not None, "a call that was told"
        return call.answer()

    async def _end_of(self, call: Call) -> None:
        """Tell a step to end, and wait until it has. Cancelled again meanwhile, the task waits on: it is being cancelled."""
        call.cancelling = True
        call.future = self._core.loop.create_future()
        if call.record is not None and call.record.status == CANCELLED:
            call.answer, call.number = _nothing, call.record.told or self._next()
            self._push(call, call.number)
        elif call.task is not None and call.number is None and call.answer is None:
            call.task.cancel()
        elif call.task is None and call.answer is None:
            self._give_up(call)
        while not call.told:
            try:
                await call.future
            except asyncio.CancelledError:
                self._core.waiting.check()
                if not call.told:
                    call.future = self._core.loop.create_future()
            self._core.waiting.check()

    def add(self, call: Call) -> None:
        """A task of the function waits for this call from now on."""
        call.context = copy_context()
        self._open[call] = None
        record = call.record
        if call.signal is not None:
            self.signals.join(call.signal, call)
        if record is None or record.told is None:
            self._queue(call)
        elif record.status != CANCELLED:
            call.number = record.told
            if call.answer is None:
                self._start(call)
            self._push(call, record.told)

    def _queue(self, call: Call) -> None:
        if call.answer is None:
            self._new.append(call)
        else:
            self._ready.append(call)

    def cancel(self, call: Call) -> None:
        """Nobody waits for this call any more. Its child is cancelled once the function goes on."""
        self._open.pop(call, None)
        if call.signal is not None:
            self.signals.leave(call.signal, call)
        if call.task is not None and not call.starting:
            call.task.cancel()
        record = call.record
        if record is not None and not record.final and record.status != CANCELLED:
            record.status, record.told = CANCELLED, self._next()
            self._cancels.append((record, call.child))

    def cancel_started(self, call: Call, child: UUID) -> None:
        """This child was started for a call that was cancelled meanwhile."""
        if call.record is not None:
            self._cancels.append((call.record, child))

    def _next(self) -> int:
        self._last += 1
        return self._last

    def reserve(self, call: Call) -> int:
        """Give a call its number: its result is about to be recorded, and is told in this order."""
        call.number = self._next()
        self._push(call, call.number)
        return call.number

    def _push(self, call: Call, number: int) -> None:
        heapq.heappush(self._numbered, (number, id(call), call))

    def settle(self, call: Call, answer: Answer, instant: datetime | None = None) -> None:
        """The result of a call is known, since this instant."""
        call.answer, call.instant = answer, instant
        if call.number is None:
            self._ready.append(call)
        self.wake()

    def serve(self, call: Call) -> None:
        """The deadline of this call found a signal: the first call in its line gets it, with the number of this call."""
        call.serves = True
        self.settle(call, _nothing)

    # -- telling ------------------------------------------------------------------------------------------------------

    def _tell(self) -> bool:
        """Tell the next result. Return whether there was one."""
        call = self._first_numbered()
        recorded = self.signals.recorded()
        numbers = [n for n in (call and call.number, recorded and recorded[0], self._end_at) if n is not None]
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
            if number > self._recorded:  # it is being recorded: what else is new need not wait for that
                self._begin()
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
        """All that is recorded was told."""
        self._core.journal.forget_unasked()
        if self.ends_as is not None:
            self._tell_end(self._next())
            return True
        self._ready = [call for call in self._ready if call in self._open]
        sent, now = self.signals.earliest(), self._core.clock()
        call = min(self._ready, key=lambda ready: ready.instant or now, default=None)
        if sent is not None and (call is None or sent[0] <= (call.instant or now)):
            self._deliver_signal(sent[1], self._next())
        elif call is not None:
            self._ready.remove(call)
            call.number = self._next()
            self._deliver(call, call.number)
        else:
            self._begin()
            self._check_waits()
            return False
        return True

    def _begin(self) -> None:
        """What is not recorded begins, and what was cancelled before is: the function goes on."""
        new, self._new = [call for call in self._new if call in self._open and call.answer is None], []
        if not new:
            return
        if self._cancels:
            self._outside.create_task(self._core.waiting.busy(self.carry_out_cancels()))
        for call in new:
            self._start(call)

    def _check_waits(self) -> None:
        """Raises ReplayMismatch, or stops the attempt, where the function waits for what never comes."""
        if any(call.task is not None or call.number is not None for call in self._open):
            return
        for call in self._open:
            if call.record is not None and call.record.status == CANCELLED:
                raise ReplayMismatch(
                    f"the function waits for {call.record.kind} {call.record.key}, and its run has cancelled it", hint=CHANGED
                )
        if self._root is not None and not self._until():
            raise ReplayMismatch(
                "the tasks of the function wait for each other, and for nothing that can come",
                hint="Look for a queue, a lock or an event that no task serves any more.",
            )

    def _start(self, call: Call) -> None:
        waiting = self._core.waiting
        waiting.begin_work()
        call.task = self._outside.create_task(self._work(call), context=call.context)

    async def _work(self, call: Call) -> None:
        waiting = self._core.waiting
        try:
            await call.work(call)
        except asyncio.CancelledError:
            if not call.cancelling:
                return
        except AttemptOver:
            return
        except Exception as error:
            waiting.end(Stopped(error))
            return
        finally:
            waiting.end_work()
        if call.cancelling and call.number is None and call.answer is None:
            self._give_up(call)

    def _give_up(self, call: Call) -> None:
        assert call.record is not None, "a step"
        call.record.status = CANCELLED
        self.settle(call, _nothing, self._core.clock())

    def _deliver(self, call: Call, number: int) -> None:
        if call.serves:
            self._serve(call, number)
            return
        record = call.record
        if record is not None:
            self._note_failure(record, number, dropped=call.cancelling)
        if record is not None and record.told != number:
            record.told = number
            cancelled = record.status == CANCELLED
            self._core.unwritten[record.key] = record if cancelled else _mark(record, number)
        self._told(call, number)

    def _note_failure(self, record: Record, number: int, *, dropped: bool) -> None:
        if record.status == FAILED:
            (self._dropped if dropped else self._failed)[record.key] = number

    def causes(self, steps: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
        """Return these steps that have failed, and those whose failure came after the first of these to a branch that was being
        cancelled: the function has not seen it."""
        keys = [Key(*step) for step in steps]
        first = min((self._failed[key] for key in keys if key in self._failed), default=None)
        unseen = [key for key, number in self._dropped.items() if first is not None and number > first]
        return list(dict.fromkeys((key.name, key.ordinal) for key in [*keys, *unseen]))

    def _serve(self, call: Call, number: int) -> None:
        assert call.signal is not None, "a call that waits for a signal"
        call.serves, call.answer, call.number = False, None, None
        served = self._deliver_signal(call.signal, number)
        if served is not call:  # its own deadline has passed and is to be recorded: it asks again
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

    # -- the end ------------------------------------------------------------------------------------------------------

    def end_as(self, status: str) -> None:
        """The run is to end: its function is told where it goes on, once."""
        if self._end_at is None:
            self.ends_as = status
            self.wake()

    def _tell_end(self, number: int) -> None:
        ends_as, self.ends_as = self.ends_as or "cancelled", None
        if self._end_at is None:
            self._core.unwritten[END_KEY] = Record(END_KEY, 0, END, COMPLETED, told=number)
        self._end_at = None
        self._core.journal.told = number
        if self._root is not None:
            self._root.cancel(f"the run was asked to end as {ends_as}")

    async def carry_out_cancels(self) -> None:
        """Record what was cancelled, and cancel its children."""
        cancels, self._cancels = self._cancels, []
        for record, _ in cancels:
            self._core.unwritten[record.key] = record
        if cancels:
            await self._core.write_values()
        children = {child for _, child in cancels if child is not None} & self._core.open_children
        if children:
            self._core.open_children -= children
            await self._core.ours(self._core.backend.cancel(sorted(children)))

    @property
    def has_cancels(self) -> bool:
        return bool(self._cancels)

    async def finish_running(self) -> None:
        """Let the functions of steps that run finish: their results are recorded."""
        self.closing = True
        running = [call.task for call in self._open if call.calling and call.task is not None]
        if running:
            await asyncio.wait(running)

    async def finish(self) -> None:
        """The run has ended for good: record what is not recorded yet, and cancel the children that nobody waits for. When something
        was told matters to no later attempt."""
        await self.carry_out_cancels()
        unwritten = self._core.unwritten
        if any(record.status != TOLD for record in unwritten.values()):
            await self._core.write_values()
        if self._core.open_children:
            await self._core.ours(self._core.backend.cancel(sorted(self._core.open_children)))

    def open_children(self) -> dict[UUID, Call]:
        """The calls that wait for children that have been started, by child."""
        return {call.child: call for call in self._open if call.child is not None and call.answer is None}


def _mark(record: Record, number: int) -> Record:
    """What says only when the result of a record was told."""
    return Record(record.key, record.position, record.kind, TOLD, told=number)


def _nothing() -> None:
    return None
