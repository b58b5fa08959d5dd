"""The tries of a step: calls of its function, and the delays between them."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

import orjson

from penstock.engine.durable.records import COMPLETED, FAILED, Record
from penstock.language.policies.policies import RetryPolicy
from penstock.run import result_encoding
from penstock.run.outcomes import TaskError
from penstock.run.raised_by_code import ends_from_outside, task_reference

IN_STEP: ContextVar[str | None] = ContextVar("penstock_in_step", default=None)
"""The name of the step whose function runs."""

ONCE = RetryPolicy()


def policy_of(retry: RetryPolicy | Mapping[str, Any] | int | None) -> RetryPolicy:
    """Return a retry policy from its short forms: `3` means {"max_attempts": 3}. Raises Wrong (a ValueError)."""
    if retry is None:
        return ONCE
    if isinstance(retry, RetryPolicy):
        return retry
    return RetryPolicy.model_validate({"max_attempts": retry} if isinstance(retry, int) else dict(retry))


async def try_once(record: Record, call: Callable[[], Any], limit: int) -> TaskError | None:
    """Call the function of a step once, and put the outcome into its record. A plain function runs in a thread. Returns
    the error if it raised one. Raises only what ends the calling task from outside."""
    task = task_reference()
    token, began = IN_STEP.set(str(record.key)), time.monotonic()
    failure: TaskError | None = None
    try:
        value, failure = await _called(call)
        if failure is None:
            record.result = result_encoding.encode(value, limit).decode()
            record.status, record.error = COMPLETED, None
    except BaseException as error:  # SystemExit too: it must not end the worker
        if ends_from_outside(error, task()):
            raise
        failure = TaskError.of(error)
    finally:
        record.took += time.monotonic() - began
        IN_STEP.reset(token)
    if failure is not None:
        record.status, record.error = FAILED, error_json(failure)
    return failure


async def _called(call: Callable[[], Any]) -> tuple[Any, TaskError | None]:
    """Call the function, and return its result. Return the error of a plain function, and raise that of a coroutine."""
    function = getattr(call, "func", call)
    # An action inside a step is a plain function call.
    function = getattr(function, "function", None) or function
    if inspect.iscoroutinefunction(function):
        return await call(), None
    value, failure = await asyncio.to_thread(_caught, call)
    return (await value if inspect.isawaitable(value) else value), failure


def _caught(call: Callable[[], Any]) -> tuple[Any, TaskError | None]:
    """Call `call` in a thread, and return its result or its error. The error is returned, since a future cannot hold
    every error: after a StopIteration or a CancelledError, the task that awaits the thread would wait for ever."""
    try:
        return call(), None
    except BaseException as error:
        return None, TaskError.of(error)


def error_json(error: TaskError) -> str:
    fields: dict[str, Any] = {"type": error.type, "message": error.message, "traceback": error.traceback}
    if error.retryable is False:
        fields["final"] = True
    return orjson.dumps(fields).decode()


def delay_of(policy: RetryPolicy, error: TaskError, tries: int, jitter: float) -> float | None:
    """Return the seconds until the next try; None if there is none. `jitter` is the random part of the delay, from 0 to 1."""
    retried = error.is_retried(policy.allows)
    if not retried or tries >= policy.max_attempts:
        return None
    return error.retry_after if error.retry_after is not None else policy.delay_before(tries + 1, jitter)
