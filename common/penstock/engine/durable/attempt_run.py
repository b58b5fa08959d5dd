"""The run of one attempt of a durable function. The function is replayed up to where the attempt before had come, and
then continues."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from penstock.engine.durable.attempt_over import (
    AttemptOver,
    GraceOver,
    Stopped,
    Suspended,
    Unfinished,
    Verdict,
)
from penstock.engine.durable.backend import Backend
from penstock.engine.durable.context import DurableContext
from penstock.engine.durable.core import Core
from penstock.engine.durable.deliveries import Deliveries
from penstock.engine.durable.journal import Journal
from penstock.errors import ClaimLost, DefinitionError, ReplayMismatch
from penstock.language.moves import CANCELLED, TIMEOUT
from penstock.language.schemas.question_schema import with_checked_question
from penstock.run.context import CURRENT
from penstock.run.deadlines import TIME_IS_UP
from penstock.run.outcomes import Outcome, TaskError
from penstock.run.raised_by_code import ends_from_outside, task_reference

CANCELS_LIMIT = 100
"""The maximum number of times that the tasks of an ended function are cancelled."""
Function = Callable[..., Coroutine[Any, Any, Any]]


class Attempt:
    """One attempt of a durable function. `retried` returns whether another attempt would follow this outcome: then
    nothing is undone yet. `grace`: the seconds that the function and its undo functions have after a request to end.
    `clock`: the clock of a test, which does not pass by itself. An attempt that only cleans up does not use it, since it
    stays while it waits. `jitter` draws the random part of the delay before a try of a step, from 0 to 1. `rollout`: the seconds
    after a change (`ctx.version`) in which code without it leaves the run to workers with newer code."""

    def __init__(
        self,
        backend: Backend,
        function: Function,
        *,
        limit: int,
        warm: float,
        grace: float,
        retried: Callable[[Outcome], bool],
        clock: Callable[[], datetime] | None = None,
        jitter: Callable[[], float] = random.random,
        rollout: float = 0.0,
    ) -> None:
        self._backend = backend
        self._rollout = rollout
        self._function = function
        self._limit = limit
        self._warm = warm
        self._grace = grace
        self._retried = retried
        self._clock = clock
        self._jitter = jitter
        self._core: Core | None = None
        self._ends_as: str | None = None
        self._is_not_undone = False
        """An undo has failed, or the grace was over before the function had cleaned up."""

    async def run(self, arguments: Mapping[str, Any]) -> Outcome:
        """Run the attempt, and return its outcome. Raises ClaimLost if the worker no longer owns the attempt, and
        CancelledError if the attempt was ended from outside. A function that was asked to end, and returned a result
        nevertheless, completes. An attempt that another attempt follows ends as it would have without the request: the
        next attempt cleans up and undoes. An attempt that was asked to end, and has not undone everything, returns an
        outcome that says so."""
        inside = asyncio.create_task(self._inside(arguments))
        try:
            return await asyncio.shield(inside)
        except asyncio.CancelledError as cancelled:
            if not inside.done():
                await self._end(inside, await self._end_to_tell(cancelled))
            if self._backend.asked_to_end() and not inside.cancelled():
                outcome = inside.result()
                # An end may be requested after the attempt has decided that another attempt follows.
                if outcome.kind not in ("failed", "timed_out") or self._retried(outcome):
                    return outcome
                if self._is_not_undone:
                    return outcome
            raise
        finally:
            inside.cancel()

    @property
    def journal(self) -> Journal | None:
        """Return the journal of the calls so far; None before the records were loaded."""
        return None if self._core is None else self._core.journal

    async def _end_to_tell(self, cancelled: asyncio.CancelledError) -> str | None:
        """Return the status with which the function is asked to end the run; None if only this attempt is over, or the
        function may no longer clean up."""
        # The state decides, and not the message of the cancellation: asyncio drops the message of a cancellation that comes
        # before the task has received the one before it.
        if self._backend.ends_at_once():
            return None
        if self._backend.asked_to_end():
            return await self._requested_end()
        is_last = TIME_IS_UP in cancelled.args and not self._retried(Outcome.timed_out(0))
        return TIMEOUT if is_last else None

    async def _requested_end(self) -> str:
        """Return the recorded status of a requested end. If it cannot be read in time, return cancelled."""
        with suppress(Exception):
            async with asyncio.timeout(self._grace):
                return await self._backend.requested_end() or CANCELLED
        return CANCELLED

    async def _end(self, inside: asyncio.Task[Outcome], ends_as: str | None) -> None:
        """End the attempt from outside. `ends_as`: the function is given this status, and has time to clean up. None:
        only this attempt is over."""
        core = self._core
        if core is None:
            if ends_as is not None:
                self._ends_as = ends_as
            else:
                inside.cancel()
        elif ends_as is not None:
            core.waiting.staying = True
            core.deliveries.end_as(ends_as)
        else:
            core.waiting.end(Unfinished())
        await asyncio.wait({inside}, timeout=self._grace)
        if self._core is not None and ends_as is not None and not inside.done():
            self._end_clean_up(self._core, ends_as)
            await asyncio.wait({inside}, timeout=1.0)
        if self._core is not None:
            self._core.waiting.end(Unfinished())
        inside.cancel()
        await asyncio.wait({inside})

    def _end_clean_up(self, core: Core, ends_as: str) -> None:
        """End an attempt that has not cleaned up within its grace, and say so in the log of its execution."""
        over = GraceOver(ends_as, self._grace)
        self._is_not_undone = True
        core.waiting.end(over)
        _log(over.message)

    async def _inside(self, arguments: Mapping[str, Any]) -> Outcome:
        history = await self._backend.load()
        clock = self._clock if history.ends_as is None else None
        core = self._core = Core(
            self._backend,
            history,
            limit=self._limit,
            warm=self._warm,
            clock=clock,
            jitter=self._jitter,
            rollout=self._rollout,
        )
        deliveries = core.deliveries
        deliveries.ends_as = deliveries.ends_as or self._ends_as
        core.waiting.staying = deliveries.ends_as is not None
        try:
            with self._within_grace(core, history.ends_as):
                outcome = await self._played(core, arguments)
        except AttemptOver:
            outcome = UNFINISHED
            if self._has_failed_for_good(core.waiting.verdict):
                # The grace of the attempt may be over: its task is cancelled, and this goes on.
                await asyncio.shield(asyncio.create_task(deliveries.cancel_children()))
        finally:
            verdict = core.waiting.verdict
            core.waiting.end(Unfinished())
            await _in_a_callback(deliveries.end_tasks)
            core.close()
            core.waiting.close()
            deliveries.forget()
        if isinstance(verdict, Suspended) and core.journal.unknown_change is not None:
            _log(f"the run waits for {', '.join(verdict.awaited.causes)}")
        return _said(verdict, outcome)

    def _has_failed_for_good(self, verdict: Verdict | None) -> bool:
        """Return whether the run fails with this verdict, and no other attempt follows. An attempt without its claim
        decides nothing."""
        match verdict:
            case Stopped(error) if isinstance(error, ClaimLost):
                return False
            case Stopped() | GraceOver():
                return not self._retried(_said(verdict, UNFINISHED))
        return False

    @contextmanager
    def _within_grace(self, core: Core, ends_as: str | None) -> Iterator[None]:
        """Limit the attempt to its grace if the end of the run was requested before the attempt began: it only cleans
        up, and stays on its worker while it waits. `ends_as`: the requested status, or None."""
        if ends_as is None:
            yield
            return
        timer = asyncio.get_running_loop().call_later(self._grace, self._end_clean_up, core, ends_as)
        try:
            yield
        finally:
            timer.cancel()

    async def _played(self, core: Core, arguments: Mapping[str, Any]) -> Outcome:
        """Run the function to its end, cancel its other tasks, and undo a failed run."""
        deliveries, context = core.deliveries, DurableContext(core)
        root = core.loop.start(
            _called(self._function(context, **arguments), self._limit, deliveries), core.loop.root
        )
        deadlock = await deliveries.run(root, root.done)
        outcome: Outcome = root.result() if deadlock is None else _deadlocked(deadlock)
        if outcome.error is not None and not deliveries.ending and self._retried(outcome):
            core.journal.forget_unasked()
            await deliveries.finish_running()
            if not deliveries.ending:
                await core.write_values()
            if not deliveries.ending:
                steps = tuple(deliveries.causes(outcome.error.steps))
                return Outcome(
                    outcome.kind, error=replace(outcome.error, steps=steps, told=core.journal.told)
                )
            deliveries.reopen()
        if outcome.kind == "completed":
            core.journal.note_end()
            if (suspended := core.left_to_newer_code()) is not None:
                core.waiting.end(suspended)
                raise AttemptOver
        if deliveries.ending and outcome.kind != "completed":
            outcome = _for_good(outcome, deliveries.ends_as)
        if deadlock := await self._cancel_tasks(core, root):
            self._is_not_undone = True
            outcome = _deadlocked(deadlock) if outcome.error is None else outcome
        if outcome.kind == "completed":
            _check_end(core)
            _checked(core, partial(core.journal.check_undos, has_completed=True))
        elif outcome.error is not None:
            if not deliveries.ending and not self._is_not_undone:
                core.journal.forget_unasked()
                _check_end(core, f"{outcome.error.type}: {outcome.error.message}")
            _checked(core, core.journal.check_undos)
            undo = core.loop.start(context.undo.run(), core.loop.root)
            # A request to end that arrives during the undo cancels the function (`root`), and not the undo.
            if deadlock := await deliveries.run(root, undo.done):
                raise core.stopped(deadlock)
            if failed := undo.result():
                self._is_not_undone = True
                outcome.error = outcome.error.followed_by(f"(and not undone: {'; '.join(failed)})")
        await deliveries.finish()
        return outcome

    async def _cancel_tasks(self, core: Core, root: asyncio.Task[Any]) -> DefinitionError | None:
        """Cancel the open tasks of the function, and the tasks that these make meanwhile. A task that then waits for
        what never comes is cancelled again, and finally given up. In that case return the error of the deadlock,
        otherwise None."""
        deadlock = None
        for _ in range(CANCELS_LIMIT):
            if not (tasks := core.loop.open_tasks()):
                break
            for task in tasks:
                task.cancel()
            deadlock = await core.deliveries.run(root, partial(_all_done, tasks)) or deadlock
        return deadlock


def _log(text: str) -> None:
    """Add a line to the log of the execution."""
    if (run := CURRENT.get()) is not None:
        run.log("log", text)


def _deadlocked(error: DefinitionError) -> Outcome:
    return Outcome("failed", error=TaskError.of(error, retryable=False))


def _for_good(outcome: Outcome, ends_as: str | None) -> Outcome:
    """Return the outcome of a function that was asked to end. No attempt follows it."""
    error = outcome.error or TaskError(
        "CancelledError", f"the run was asked to end as {ends_as or CANCELLED}"
    )
    return Outcome("failed", error=replace(error, retryable=False))


def _all_done(tasks: Sequence[asyncio.Task[Any]]) -> bool:
    return all(task.done() for task in tasks)


def _check_end(core: Core, error: str | None = None) -> None:
    _checked(core, partial(core.journal.check_end, error))


def _checked(core: Core, check: Callable[[], None]) -> None:
    try:
        check()
    except ReplayMismatch as error:
        raise core.stopped(error) from None


async def _called(function: Coroutine[Any, Any, Any], limit: int, deliveries: Deliveries) -> Outcome:
    """Run a function as a task of its own loop, and return its outcome."""
    task = task_reference()
    try:
        return with_checked_question(Outcome.returned(await function, limit))
    except asyncio.CancelledError as error:
        if deliveries.end_reason and error.args in ((), (deliveries.end_reason,)):
            # The database replaces this message by the reason of the request, which the attempt does not know.
            return Outcome(
                "failed", error=TaskError(deliveries.end_status, deliveries.end_reason, retryable=False)
            )
        return Outcome("failed", error=TaskError.of(error, retryable=False))
    except AttemptOver:
        raise
    except BaseException as error:
        if ends_from_outside(error, task()):
            raise
        return with_checked_question(Outcome.raised(error, limit=limit))


async def _in_a_callback(function: Callable[[], None]) -> None:
    """Call `function` in a callback of the worker's loop, while no task runs."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def call() -> None:
        function()
        if not done.done():
            done.set_result(None)

    loop.call_soon(call)
    await done


UNFINISHED = Outcome("failed", error=TaskError("AttemptOver", "the attempt is over, the run goes on"))
"""The outcome of an attempt with a verdict. The outcome is never reported, since the verdict decides."""


def _said(verdict: Verdict | None, outcome: Outcome) -> Outcome:
    match verdict:
        case None:
            return outcome
        case Suspended(awaited):
            return Outcome("suspended", awaited=awaited.document())
        case Stopped(error) if isinstance(error, ClaimLost):
            raise error
        case Stopped(error):
            final = isinstance(error, ReplayMismatch | DefinitionError)
            return Outcome("failed", error=TaskError.of(error, retryable=False if final else None))
        case GraceOver():
            return Outcome(
                "failed", error=TaskError.of(asyncio.CancelledError(verdict.message), retryable=False)
            )
        case Unfinished():
            raise asyncio.CancelledError
