"""Faults that durable functions once had. Each is put back alone, and the random programs have to find it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import datetime
from itertools import count
from typing import Any

import pytest

from penstock.engine.durable import attempt_run, branches, journal, retried_history, waits
from penstock.engine.durable.attempt_run import Attempt
from penstock.engine.durable.branches import Branch
from penstock.engine.durable.calls import Answer, Call
from penstock.engine.durable.core import Core
from penstock.engine.durable.deliveries import Deliveries
from penstock.engine.durable.open_calls import OpenCalls
from penstock.engine.durable.records import RUN, STARTED, SUPERSEDED, History, Key, Record
from penstock.engine.durable.signal_queues import SignalLines
from penstock.engine.durable.undo import Undo
from penstock.errors import StepFailed
from penstock.run import outcomes
from penstock.run.outcomes import Outcome


class _LateBranch(Branch):
    """A branch that gets its path when it first asks for something."""

    def __init__(self, parent: Branch) -> None:
        super().__init__("")
        self.parent: Branch | None = parent

    def next(self) -> Branch:
        return _LateBranch(self)


def number_branches_when_they_ask(patch: pytest.MonkeyPatch) -> None:
    """A branch gets its number when it first asks for something, and what is recorded is told when it is asked for."""
    branch_here, numbered, add, order = branches.branch_here, Branch.next, OpenCalls.add, count(-(10**9))

    def resolved(branch: Branch) -> Branch:
        if isinstance(branch, _LateBranch) and branch.parent is not None:
            branch.path, branch.parent = numbered(resolved(branch.parent)).path, None
        return branch

    def add_told(calls: OpenCalls, call: Call) -> None:
        add(calls, call)
        if call.record is not None and call.record.told is not None and call.answer is not None:
            call.number = next(order)
            calls._push(call, call.number)

    patch.setattr(OpenCalls, "add", add_told)
    patch.setattr(Branch, "next", lambda branch: _LateBranch(branch))
    patch.setattr(journal, "branch_here", lambda: resolved(branch_here()))


def name_undos_by_function(patch: pytest.MonkeyPatch) -> None:
    """Number undos by the order of their registration, while a later attempt runs them by branches."""
    run = Undo.run

    async def by_function(undo: Undo) -> list[str]:
        records, names = undo._core.journal._history.records, Counter[str]()
        if any(record.told for record in records.values()):
            undo._registered.sort(key=lambda registered: journal.path_of(registered[0].key.name))
        for nth, (record, function) in enumerate(undo._registered):
            name = record.key.name.rpartition("/")[2]
            names[name] += 1
            key = Key(name, names[name])
            stored = records.get(key) or Record(key, 0, record.kind, record.status, tries=0)
            undo._registered[nth] = (stored, function)
        return await run(undo)

    patch.setattr(Undo, "run", by_function)


def see_only_the_error_itself(patch: pytest.MonkeyPatch) -> None:
    """A failed step is a cause only where it is the error, and not a member of a group, an error before it, or in a branch."""

    def failed_step(error: BaseException) -> tuple[tuple[str, int], ...]:
        alone = isinstance(error, StepFailed) and "/" not in error.name
        return ((error.name, error.ordinal),) if alone else ()  # type: ignore[attr-defined]

    patch.setattr(outcomes, "failed_steps", failed_step)


def read_signals_once_an_attempt(patch: pytest.MonkeyPatch) -> None:
    """A signal that is sent while an attempt runs is not heard in it."""
    written = Core.written

    async def look(core: Core) -> None:
        """See nothing new."""

    async def passed(core: Core, record: Record) -> Record:
        record.unless = None
        return await written(core, record)

    patch.setattr(Core, "look", look)
    patch.setattr(Core, "written", passed)


def tell_late_results_as_they_are_known(patch: pytest.MonkeyPatch) -> None:
    """An attempt that begins late tells a signal before a sleep that was over before the signal was sent."""
    patch.setattr(OpenCalls, "_is_expected", lambda calls, before: False)


def hear_signals_after_their_deadline(patch: pytest.MonkeyPatch) -> None:
    """A deadline that passed while no worker had time for the run is forgotten where a signal was sent since."""
    patch.setattr(waits, "_is_sent_after", lambda signal, deadline, span: False)


def hear_no_signal_while_a_step_runs(patch: pytest.MonkeyPatch) -> None:
    """A signal that is sent while a step of hours runs is heard with its deadline, or in the next attempt."""

    async def look(core: Core) -> None:
        """See nothing new."""

    patch.setattr(Core, "look", look)


def give_signals_to_the_call_that_was_made_last(patch: pytest.MonkeyPatch) -> None:
    """The last one of several calls that wait for one signal name gets the signal."""
    join = SignalLines.join

    def join_first(lines: SignalLines, name: str, call: Call) -> None:
        join(lines, name, call)
        lines._lines[name].sort(key=lambda waiting: -waiting.order)

    patch.setattr(SignalLines, "join", join_first)


def keep_cancelled_children_after_a_failure(patch: pytest.MonkeyPatch) -> None:
    """A call whose child was cancelled before an attempt failed waits for the same child in the next attempt."""
    forget_failure = retried_history.forget_failure

    def forget(history: History) -> tuple[set[Key], list[Record]]:
        keys, changed = forget_failure(history)
        for record in changed:
            record.status = STARTED if record.status == SUPERSEDED else record.status
        return keys, changed

    patch.setattr(journal, "forget_failure", forget)


def tell_ends_of_children_when_they_are_known(patch: pytest.MonkeyPatch) -> None:
    """An attempt that begins late tells the end of a child after all that was over before the attempt began."""
    settle = OpenCalls.settle

    def settle_now(calls: OpenCalls, call: Call, answer: Answer, instant: datetime | None = None) -> None:
        settle(calls, call, answer, None if call.record is not None and call.record.kind == RUN else instant)

    patch.setattr(OpenCalls, "settle", settle_now)


def _returned_if(returned: Callable[[Attempt, Outcome], bool]) -> Callable[..., Any]:
    """Return another `Attempt.run`, which returns these outcomes alone where the end of the run is requested."""

    async def run(attempt: Attempt, arguments: Mapping[str, Any]) -> Outcome:
        inside = asyncio.create_task(attempt._inside(arguments))
        try:
            return await asyncio.shield(inside)
        except asyncio.CancelledError as cancelled:
            if not inside.done():
                await attempt._end(inside, await attempt._end_to_tell(cancelled))
            if not inside.cancelled() and returned(attempt, inside.result()):
                return inside.result()
            raise
        finally:
            inside.cancel()

    return run


def drop_what_a_cancelled_function_returns(patch: pytest.MonkeyPatch) -> None:
    """A function that returns although its end was requested is cancelled, unless it was asleep."""
    again = _returned_if(lambda attempt, outcome: outcome.kind == "suspended" or attempt._retried(outcome))
    patch.setattr(Attempt, "run", again)


def undo_nothing_that_is_asked_to_end_after_its_failure(patch: pytest.MonkeyPatch) -> None:
    """A failed attempt, after which another one follows, ends as cancelled where the end is requested in its last turns."""
    again = _returned_if(lambda attempt, outcome: outcome.kind in ("completed", "suspended", "deferred"))
    patch.setattr(Attempt, "run", again)


def try_again_what_is_asked_to_end(patch: pytest.MonkeyPatch) -> None:
    """A function that fails after it was asked to end is tried again."""

    def again(outcome: Outcome, ends_as: str | None) -> Outcome:
        return outcome

    patch.setattr(attempt_run, "_for_good", again)


def tell_every_end_as_cancelled(patch: pytest.MonkeyPatch) -> None:
    """A function is told that its run ends as cancelled, whatever was requested."""
    tell_end = Deliveries._tell_end

    def tell(deliveries: Deliveries, number: int) -> None:
        deliveries.ends_as = "cancelled"
        tell_end(deliveries, number)

    patch.setattr(Deliveries, "_tell_end", tell)


def clean_up_for_ever(patch: pytest.MonkeyPatch) -> None:
    """A run that was asleep when its end was requested cleans up without an end of its grace."""
    patch.setattr(Attempt, "_within_grace", lambda attempt, core, ends_as: nullcontext())


def cancel_what_undoes_a_function(patch: pytest.MonkeyPatch) -> None:
    """The end that is requested while a failed function is undone cancels what undoes it."""
    run = Deliveries.run

    async def run_until(deliveries: Deliveries, root: asyncio.Task[Any], until: Callable[[], bool]) -> None:
        task = getattr(until, "__self__", None)
        await run(deliveries, task if isinstance(task, asyncio.Task) else root, until)

    patch.setattr(Deliveries, "run", run_until)


def finish_steps_although_the_end_is_requested(patch: pytest.MonkeyPatch) -> None:
    """A step that hangs is waited for where the end is requested after a failure, and nothing is undone."""

    async def finish_running(calls: OpenCalls) -> None:
        calls.closing = True
        running = [call.task for call in calls._open if call.calling and call.task is not None]
        if running:
            await asyncio.wait(running)

    patch.setattr(OpenCalls, "finish_running", finish_running)


def go_on_before_a_cancelled_step_has_ended(patch: pytest.MonkeyPatch) -> None:
    """A branch that is cancelled goes on while the function of its step still ends."""
    end_of = OpenCalls._end_of

    async def end_at_once(calls: OpenCalls, call: Call) -> None:
        if call.task is not None and call.number is None and call.answer is None:
            calls._give_up(call)
        await end_of(calls, call)

    patch.setattr(OpenCalls, "_end_of", end_at_once)


def end_a_cancelled_step_that_goes_on(patch: pytest.MonkeyPatch) -> None:
    """A step that goes on for a moment after its cancellation is cancelled once more."""
    end_of = OpenCalls._end_of

    async def end_at_once(calls: OpenCalls, call: Call) -> None:
        if call.task is not None:
            calls._outside.call_later(0.1, call.task.cancel)
        await end_of(calls, call)

    patch.setattr(OpenCalls, "_end_of", end_at_once)


FAULTS: list[Callable[[pytest.MonkeyPatch], None]] = [
    number_branches_when_they_ask,
    name_undos_by_function,
    see_only_the_error_itself,
    read_signals_once_an_attempt,
    tell_late_results_as_they_are_known,
    hear_signals_after_their_deadline,
    hear_no_signal_while_a_step_runs,
    give_signals_to_the_call_that_was_made_last,
    keep_cancelled_children_after_a_failure,
]
FAULTS_OF_ENDS: list[Callable[[pytest.MonkeyPatch], None]] = [
    drop_what_a_cancelled_function_returns,
    undo_nothing_that_is_asked_to_end_after_its_failure,
    try_again_what_is_asked_to_end,
    tell_every_end_as_cancelled,
    clean_up_for_ever,
    cancel_what_undoes_a_function,
    finish_steps_although_the_end_is_requested,
    go_on_before_a_cancelled_step_has_ended,
    end_a_cancelled_step_that_goes_on,
]
