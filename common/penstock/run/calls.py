"""The call of an action's function inside its run: its context, its arguments and its outcome."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.errors import ClaimLost, DefinitionError
from penstock.run.batch_calls import batch_outcome, items_of
from penstock.run.context import CURRENT
from penstock.run.event_loop import run_to_end
from penstock.run.forked_process import end_forked_process
from penstock.run.outcomes import Outcome, TaskError
from penstock.run.raised_by_code import ends_from_outside
from penstock.run.task_executors import Run


async def call(run: Run) -> Outcome:
    """Await the coroutine function of the run's action in the calling task, and return the outcome.

    Raises CancelledError only if the calling task was cancelled, and ClaimLost only for a durable function. Whatever
    else the action raises is a failure, also CancelledError, GeneratorExit and SystemExit. SystemExit in a task that the
    action started ends the action. A process that the action forked ends when it returns from the function.
    """
    process = os.getpid()
    outcome = await _called(run)
    if os.getpid() != process:
        end_forked_process(outcome)
    return outcome


async def _called(run: Run) -> Outcome:
    token = CURRENT.set(run)
    task = run.task = asyncio.current_task()
    arguments = None
    try:
        if run.items is not None:
            return batch_outcome(run, await _function(run)(items_of(run)))
        arguments = run.action.bind(run.params)
        if run.durable is not None:
            durable: Outcome = await run.durable(arguments)
            return durable
        return Outcome.returned(await _function(run)(**arguments), run.result_limit)
    except BaseException as error:  # SystemExit too: an action that calls sys.exit() must not end the worker
        if ends_from_outside(error, task, requested=int(run.exited is not None)):
            run.cancelled = True
            raise
        # The worker handles the lost claim of a durable function.
        if isinstance(error, ClaimLost) and run.durable is not None:
            raise
        if isinstance(error, asyncio.CancelledError) and run.exited is not None:
            return _exited(run.exited)
        return _raised(error, run, bound=arguments is not None)
    finally:
        run.task = None
        if task is not None and run.exited is not None:
            task.uncancel()
        CURRENT.reset(token)


def call_plain(run: Run) -> Outcome:
    """Call the function of the run's action in this thread, and block until it returns. A coroutine function gets its
    own event loop. A process that the action forked ends when it returns from the function."""
    process = os.getpid()
    outcome = _called_plain(run)
    if os.getpid() != process:
        end_forked_process(outcome)
    return outcome


def _called_plain(run: Run) -> Outcome:
    if run.action.is_coroutine:
        return _call_in_loop(run)
    token = CURRENT.set(run)
    arguments = None
    try:
        if run.items is not None:
            return batch_outcome(run, _function(run)(items_of(run)))
        arguments = run.action.bind(run.params)
        return Outcome.returned(_function(run)(**arguments), run.result_limit)
    except BaseException as error:
        return _raised(error, run, bound=arguments is not None)
    finally:
        CURRENT.reset(token)


def _call_in_loop(run: Run) -> Outcome:
    try:
        return run_to_end(call(run))
    except BaseException as error:  # a function that cancels its own task, for example
        return _raised(error, run, bound=True)


def with_costs(outcome: Outcome, run: Run) -> Outcome:
    """Return the outcome with the costs that the run has reported, for a process that answers to the worker."""
    return replace(outcome, costs=dict(run.costs)) if run.costs else outcome


def _exited(error: BaseException) -> Outcome:
    failure = TaskError.of(error)
    message = f"a task of the function raised {failure.type}({failure.message}): let the task raise an exception or return"
    return Outcome.failed(replace(failure, message=message))


def _raised(error: BaseException, run: Run, *, bound: bool) -> Outcome:
    # If binding the parameters fails, it fails in each later attempt too. The parameters of items were bound before.
    is_bound = bound or run.items is not None
    return Outcome.raised(error, retryable=None if is_bound else False, limit=run.result_limit)


def _function(run: Run) -> Callable[..., Any]:
    function = run.action.function
    if function is None:
        raise DefinitionError(
            f"{run.action.ref} has no Python function to call",
            hint="Name the task executor that its kind needs: command, http or kubernetes.",
        )
    return function
