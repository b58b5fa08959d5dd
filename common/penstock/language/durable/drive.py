"""One attempt of a durable function: replayed up to where the one before had come, gone on with, and ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

from penstock.errors import ClaimLost, ReplayMismatch
from penstock.language.durable.attempt_over import AttemptOver, Stopped, Suspended, Unfinished
from penstock.language.durable.backend import Backend
from penstock.language.durable.context import DurableContext
from penstock.language.durable.core import Core
from penstock.language.durable.journal import BRANCH, Branch, Journal
from penstock.language.durable.waiting import Waiting
from penstock.run.deadlines import TIME_IS_UP
from penstock.run.outcomes import Outcome, TaskError

Function = Callable[..., Coroutine[Any, Any, Any]]


class Attempt:
    """`retried`: whether another attempt would follow if this one failed with this error; then nothing is undone yet. `grace`:
    seconds that the function and what undoes it have once it was asked to end."""

    def __init__(
        self,
        backend: Backend,
        function: Function,
        *,
        limit: int,
        warm: float,
        grace: float,
        retried: Callable[[Outcome], bool],
    ) -> None:
        self._backend = backend
        self._function = function
        self._limit = limit
        self._warm = warm
        self._grace = grace
        self._retried = retried
        self._core: Core | None = None
        self._ends_as: str | None = None

    async def run(self, arguments: Mapping[str, Any]) -> Outcome:
        """What came of it. Raises ClaimLost, and CancelledError where the attempt was ended from outside."""
        inside = asyncio.create_task(self._inside(arguments))
        try:
            return await asyncio.shield(inside)
        except asyncio.CancelledError as cancelled:
            if not inside.done():
                await self._end(inside, told=self._backend.asked_to_end() or self._is_late(cancelled))
            raise
        finally:
            inside.cancel()

    @property
    def journal(self) -> Journal | None:
        """What was asked for so far; None before what is recorded was loaded."""
        return None if self._core is None else self._core.journal

    def _is_late(self, cancelled: asyncio.CancelledError) -> bool:
        """Whether its time is up, and no other attempt follows."""
        return TIME_IS_UP in cancelled.args and not self._retried(Outcome.timed_out(0))

    async def _end(self, inside: asyncio.Task[Outcome], *, told: bool) -> None:
        """End it from outside. `told`: as a cancellation, with time to clean up; else only this attempt is over."""
        core = self._core
        if core is not None and not told:
            core.waiting.end(Unfinished())
        elif core is not None:
            core.waiting.staying = True
        if told and (core is None or core.journal.replaying):
            self._ends_as = "cancelled"  # it is told where it goes on
            if core is not None:
                core.waiting.ends_as = "cancelled"
        else:
            inside.cancel()
        await asyncio.wait({inside}, timeout=self._grace)
        if self._core is not None:
            self._core.waiting.end(Unfinished())
        inside.cancel()
        await asyncio.wait({inside})

    async def _inside(self, arguments: Mapping[str, Any]) -> Outcome:
        root = Branch("", asyncio.current_task())
        BRANCH.set(root)
        core = self._core = Core(
            self._backend, await self._backend.load(), limit=self._limit, warm=self._warm
        )
        core.waiting.ends_as = core.waiting.ends_as or self._ends_as
        core.waiting.staying = core.waiting.ends_as is not None
        context = DurableContext(core)
        try:
            outcome = await self._called(core, context, arguments)
            if outcome.error is not None and not self._retried(outcome):
                await _undo(context, outcome)
            if core.open_children:
                await core.ours(self._backend.cancel(sorted(core.open_children)))
        except AttemptOver:
            outcome = UNFINISHED
        finally:
            core.waiting.close()
            root.end()
            root.task = None
        return _said(core.waiting, outcome)

    async def _called(self, core: Core, context: DurableContext, arguments: Mapping[str, Any]) -> Outcome:
        try:
            result = await self._function(context, **arguments)
            core.waiting.check()
            core.journal.check_end()
            await core.write_values()
            return Outcome.returned(result, self._limit)
        except asyncio.CancelledError as error:
            core.waiting.check()
            return _cancelled(error)
        except (AttemptOver, GeneratorExit):
            raise
        except ReplayMismatch as error:
            raise core.stopped(error) from None
        except BaseException as error:
            core.waiting.check()
            return Outcome.raised(error, limit=self._limit)


async def _undo(context: DurableContext, outcome: Outcome) -> None:
    failed = await context.compensate()
    if failed and outcome.error is not None:
        message = f"{outcome.error.message} (and not undone: {'; '.join(failed)})"
        outcome.error = replace(outcome.error, message=message)


def _cancelled(error: asyncio.CancelledError) -> Outcome:
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        task.uncancel()
    return Outcome("failed", error=TaskError.of(error, retryable=False))


UNFINISHED = Outcome("failed", error=TaskError("AttemptOver", "the attempt is over, the run goes on"))
"""Never reported: the verdict says what came of the attempt."""


def _said(waiting: Waiting, outcome: Outcome) -> Outcome:
    match waiting.verdict:
        case None:
            return outcome
        case Suspended(awaited):
            return Outcome("suspended", awaited=awaited.document())
        case Stopped(error) if isinstance(error, ClaimLost):
            raise error
        case Stopped(error):
            return Outcome("failed", error=TaskError.of(error, retryable=False))
        case Unfinished():
            raise asyncio.CancelledError
