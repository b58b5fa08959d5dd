"""The calls that a durable function awaits: the tasks that work for them on the worker's loop, and their
cancellation."""

from __future__ import annotations

import asyncio
import heapq
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeVar
from uuid import UUID

from penstock.engine.durable.attempt_over import AttemptOver, Stopped
from penstock.engine.durable.backend import Backend
from penstock.engine.durable.calls import Answer, Call
from penstock.engine.durable.journal import Journal
from penstock.engine.durable.records import (
    CANCELLED,
    CHILDREN,
    FAILED,
    SLEEP,
    STEP,
    TOLD,
    Child,
    History,
    Key,
    Record,
    instant_of,
)
from penstock.engine.durable.run_loop import RunLoop
from penstock.engine.durable.signal_queues import SignalLines
from penstock.engine.durable.waiting import Waiting

T = TypeVar("T")


class Writer(Protocol):
    """The part of an attempt that its calls use."""

    backend: Backend
    journal: Journal
    loop: RunLoop
    waiting: Waiting
    children: dict[Key, Child]
    open_children: set[UUID]
    unwritten: dict[Key, Record]
    clock: Callable[[], datetime]

    def answer_of(self, record: Record) -> Answer: ...

    async def write_values(self) -> None: ...

    async def ours(self, write: Awaitable[T]) -> T: ...


class OpenCalls(ABC):
    """The open calls of a function.

    `signals` are the sent signals, and the calls that wait for them. A result that can be delivered has a number
    (`_numbered`), or gets one when it is delivered (`_ready`). Calls in `_new` have not begun. `_expected` are the
    sleeps and the ended children, with the instants at which their results are there. A result that came after such an
    instant is delivered after them. `_starts` are the cancelled calls whose children are being started.
    """

    def __init__(self, core: Writer, history: History) -> None:
        self._core = core
        self._outside = asyncio.get_running_loop()
        self._recorded = max((record.told or 0 for record in history.records.values()), default=0)
        self._last = self._recorded
        self._numbered: list[tuple[int, int, Call]] = []
        self._ready: list[Call] = []
        self._new: list[Call] = []
        self._open: dict[Call, None] = {}
        self._expected: list[tuple[datetime, int, Call]] = []
        self._starts: set[asyncio.Task[None]] = set()
        self._cancels: list[tuple[Record, UUID | None]] = [
            (record, child.id)
            for key, child in history.children.items()
            if not child.ended and (record := history.records.get(key)) and record.status == CANCELLED
        ]
        core.open_children.update(child.id for child in history.children.values() if not child.ended)
        self._failed: dict[Key, int] = {}
        self._dropped: dict[Key, int] = {}
        self.signals = SignalLines(history.records)
        self.closing = False
        """The function has failed and is tried again: functions of steps that run are let finish, and nothing is told."""
        self.asked_to_end = self._outside.create_future()
        """Done once the end of the run is requested."""
        self.attempt_over = self._outside.create_future()
        """Done once the attempt has a verdict."""

    @abstractmethod
    def wake(self) -> None:
        """Deliver the known results."""

    async def result_of(self, call: Call) -> Any:
        """Wait until the result of a call is delivered. Return the result, or raise its error. The caller is a task of
        the function."""
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
            elif (
                call.task is None and call.answer is None and call.record.at is None and not call.record.tries
            ):
                # The function of the step was never called, so the step leaves no record.
                self._open.pop(call, None)
            else:
                await self._end_of(call)
            raise
        waiting.check()
        assert call.answer is not None, "a call that was told"
        return call.answer()

    async def _end_of(self, call: Call) -> None:
        """Cancel the function of a step, and wait until it has ended. If the waiting task is cancelled again meanwhile,
        it still waits."""
        call.cancelling = True
        call.future = self._core.loop.create_future()
        if call.record is not None and call.record.status == CANCELLED:
            call.answer, call.number = _nothing, call.record.told or self._next()
            self._push(call, call.number)
        elif call.task is not None and call.number is None and call.answer is None:
            self._note_begun(call)
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

    def _note_begun(self, call: Call) -> None:
        """Let the next write record that the function of a cancelled step was called. Results that are delivered before the
        function has ended are recorded earlier than its end. After a crash, the next attempt delivers them first, too.
        Without the record it would take the step for one that was never called, and would end it at once."""
        record = call.record
        if record is not None and record.at is None and not record.tries:
            self._core.unwritten[record.key] = replace(record)

    def add(self, call: Call) -> None:
        """Note that a task of the function waits for this call."""
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
            if (instant := self._recorded_instant(call)) is not None:
                self.expect(call, instant)
        else:
            self._ready.append(call)

    def _recorded_instant(self, call: Call) -> datetime | None:
        """Return the instant at which a sleep or a deadline that has begun is over, or at which a child has ended."""
        record = call.record
        if record is None:
            return None
        if record.kind == SLEEP:
            return None if record.result is None else instant_of(record)
        child = self._core.children.get(record.key) if record.kind in CHILDREN else None
        return child.at if child is not None and child.ended else None

    def expect(self, call: Call, instant: datetime) -> None:
        """Note the instant since which the result of a call is there, although its value becomes known a moment later."""
        heapq.heappush(self._expected, (instant, id(call), call))

    def expect_children(self, ends: Mapping[UUID, Child]) -> None:
        """Note that these children have ended. The calls that wait for them receive the results shortly."""
        for call in self._open:
            child = None if call.child is None or call.answer is not None else ends.get(call.child)
            if child is not None and child.at is not None:
                self.expect(call, child.at)

    def _is_expected(self, before: datetime) -> bool:
        """Return whether a result that is not known yet was there before this instant."""
        while self._expected:
            instant, _, call = self._expected[0]
            if call in self._open and call.answer is None and call.number is None and call.record is not None:
                return instant < before
            heapq.heappop(self._expected)
        return False

    def cancel(self, call: Call) -> None:
        """Cancel this call, because no task waits for it any more. Its child is cancelled once the function goes on."""
        self._open.pop(call, None)
        if call.signal is not None:
            self.signals.leave(call.signal, call)
        if call.task is not None and call.starting:
            self._starts.add(call.task)
            call.task.add_done_callback(self._starts.discard)
        elif call.task is not None:
            call.task.cancel()
        record = call.record
        if record is not None and not record.final and record.status != CANCELLED:
            record.status, record.told = CANCELLED, self._next()
            child = self._core.children.get(record.key)
            self._cancels.append((record, None if child is None else child.id))

    def cancel_started(self, call: Call, child: UUID) -> None:
        """Cancel a child that was started for a call which was cancelled meanwhile."""
        if call.record is not None:
            self._cancels.append((call.record, child))

    def _next(self) -> int:
        self._last += 1
        return self._last

    def reserve(self, call: Call) -> int:
        """Reserve the next number for a call's result, which is about to be recorded, and return it. Results are
        delivered in the order of numbers."""
        call.number = self._next()
        self._push(call, call.number)
        return call.number

    def _push(self, call: Call, number: int) -> None:
        heapq.heappush(self._numbered, (number, id(call), call))

    def settle(self, call: Call, answer: Answer, instant: datetime | None = None) -> None:
        """Note the result of a call, which was available at `instant`."""
        call.answer, call.instant = answer, instant
        if call.number is None:
            self._ready.append(call)
        self.wake()

    async def decision(self, call: Call, instant: datetime) -> int:
        """Wait until all results that were available before this instant are delivered. Return the number of the
        record of this call's deadline."""
        call.instant, call.decision = instant, self._outside.create_future()
        self._ready.append(call)
        self.wake()
        return await call.decision

    def serve(self, call: Call) -> None:
        """Serve a signal that the deadline of this call found. The first call that waits for the signal gets it, with
        the number of this call."""
        call.serves = True
        self.settle(call, _nothing)

    def _begin(self, *, deciding: bool = False) -> None:
        """Begin the calls that are not recorded, and carry out earlier cancels, since the function has gone on.
        `deciding`: a deadline that has passed is being recorded."""
        new, self._new = [call for call in self._new if call in self._open and call.answer is None], []
        now = self._core.clock()
        # Results that are known to be there are delivered before any new call begins.
        if deciding or self._is_expected(before=now):
            over = {call for call in new if (at := self._recorded_instant(call)) is not None and at < now}
            self._new = [call for call in new if call not in over]
            new = [call for call in new if call in over]
        if not new:
            return
        if self._cancels:
            self._outside.create_task(self._core.waiting.busy(self._cancel_beside()))
        for call in new:
            self._start(call)

    def _start(self, call: Call) -> None:
        waiting = self._core.waiting
        waiting.begin_work()
        call.task = self._outside.create_task(self._work(call), context=call.context)
        call.task.add_done_callback(partial(self._end_unbegun, waiting, call))

    def _end_unbegun(self, waiting: Waiting, call: Call, task: asyncio.Task[None]) -> None:
        """End the work for a call if its task was cancelled before its first step: `_work` has not run."""
        if task.cancelled() and waiting.verdict is None:
            waiting.end_work()
            if call.cancelling and call.number is None and call.answer is None:
                self._give_up(call)

    async def _work(self, call: Call) -> None:
        waiting = self._core.waiting
        try:
            await call.work(call)
        except asyncio.CancelledError as error:
            if not call.cancelling:
                if (
                    call in self._open and waiting.verdict is None
                ):  # the code of a step cancelled its own task
                    waiting.end(Stopped(error))
                return
        except (AttemptOver, GeneratorExit):
            return
        except BaseException as error:
            waiting.end(Stopped(error))
            return
        finally:
            waiting.end_work()
        if call.cancelling and call.number is None and call.answer is None:
            self._give_up(call)

    def _give_up(self, call: Call) -> None:
        """Settle a step that was cancelled and has ended. Its record becomes cancelled when this is delivered, and not
        by an earlier write."""
        self.settle(call, _nothing)

    def _note_failure(self, record: Record, number: int, *, dropped: bool) -> None:
        if record.status == FAILED:
            (self._dropped if dropped else self._failed)[record.key] = number

    def causes(self, steps: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
        """Return these failed steps. Add the steps that failed later in a branch that was being cancelled: the function
        has not seen those failures."""
        keys = [Key(*step) for step in steps]
        first = min((self._failed[key] for key in keys if key in self._failed), default=None)
        unseen = [key for key, number in self._dropped.items() if first is not None and number > first]
        return list(dict.fromkeys((key.name, key.ordinal) for key in [*keys, *unseen]))

    async def carry_out_cancels(self) -> None:
        """Record the cancelled calls, and cancel their children."""
        cancels, self._cancels = self._cancels, []
        for record, _ in cancels:
            self._core.unwritten[record.key] = record
        if cancels:
            await self._core.write_values()
        children = {child for _, child in cancels if child is not None} & self._core.open_children
        if children:
            await self._core.ours(self._core.backend.cancel(sorted(children)))
            self._core.open_children -= children

    async def _cancel_beside(self) -> None:
        with suppress(AttemptOver):
            await self.carry_out_cancels()

    @property
    def has_cancels(self) -> bool:
        return bool(self._cancels)

    async def finish_running(self) -> None:
        """Wait until the running functions of steps have finished, and their results are recorded. Stop waiting if the end of
        the run is requested: no other attempt would use these results. Stop also if the attempt is over, since it records
        nothing more: its claim is lost, or its worker stops."""
        self.closing = True
        running = {call.task for call in self._open if call.calling and call.task is not None}
        reasons = {self.asked_to_end, self.attempt_over}
        while running and not any(reason.done() for reason in reasons):
            done, _ = await asyncio.wait({*running, *reasons}, return_when=asyncio.FIRST_COMPLETED)
            running -= done

    def reopen(self) -> None:
        """Deliver results again, because the function that has failed is not tried again. Deliver the results of steps that
        have finished meanwhile. A step with a try that failed meanwhile is not tried again: it is cancelled with its task."""
        self.closing = False
        for call in self._open:
            if call.task is not None and call.task.done() and call.number is None and call.answer is None:
                if call.record is not None and call.record.final:
                    self._start(call)
                else:
                    call.task = None

    async def finish(self) -> None:
        """Record what is not recorded yet, and cancel the children that no call waits for, because the run has ended
        for good. No later attempt needs the numbers of deliveries."""
        # The start of a child may commit after its call was cancelled, and before the end of the run is reported. No other
        # attempt would find that child.
        while self._starts:
            await asyncio.wait(self._starts)
        await self.carry_out_cancels()
        unwritten = self._core.unwritten
        if any(record.status != TOLD for record in unwritten.values()):
            await self._core.write_values()
        if self._core.open_children:
            await self._core.ours(self._core.backend.cancel(sorted(self._core.open_children)))

    async def cancel_children(self) -> None:
        """Cancel all open children, because the attempt is over without its end, and no other attempt follows. Children that
        are being started are among them."""
        backend, children = self._core.backend, self._core.open_children
        starts = {call.task for call in self._open if call.starting and call.task is not None}
        if starts := starts | self._starts:
            await asyncio.wait(starts)
        if children:
            await backend.cancel(sorted(children))

    def open_children(self) -> dict[UUID, Call]:
        """Return the calls that wait for started children, by child."""
        return {call.child: call for call in self._open if call.child is not None and call.answer is None}


def _nothing() -> None:
    return None
