"""The tries of a step: what its record holds after one, and when the next one comes."""

from __future__ import annotations

import asyncio
import threading
from contextvars import copy_context
from functools import partial
from typing import Any

import orjson
import pytest

from penstock import NonRetryable, Retry, action
from penstock.engine.durable.records import COMPLETED, FAILED, STARTED, STEP, Key, Record
from penstock.engine.durable.step_tries import IN_STEP, delay_of, error_json, policy_of, try_once
from penstock.language.policies.policies import RetryPolicy
from penstock.run.outcomes import TaskError

LIMIT = 1000


def _record() -> Record:
    return Record(Key("2/charge", 3), 1, STEP, STARTED, error='{"message": "before"}', took=10.0)


async def _coroutine(n: int) -> int:
    await asyncio.sleep(0)
    return n + 1


def _plain(n: int) -> int:
    assert threading.current_thread() is not threading.main_thread()
    return n + 2


def _gives_awaitable(n: int) -> Any:
    return _coroutine(n)


def _step_name(n: int) -> str | None:
    return IN_STEP.get()


async def _raises(n: int) -> None:
    raise LookupError(f"no order {n}")


async def _exits(n: int) -> None:
    raise SystemExit(n)


def _stops(n: int) -> None:
    raise StopIteration(n)


def _cancels(n: int) -> None:
    raise asyncio.CancelledError(n)


async def _cancels_later(n: int) -> None:
    raise asyncio.CancelledError(n)


async def _closes(n: int) -> None:
    raise GeneratorExit(n)


async def _groups(n: int) -> None:
    raise BaseExceptionGroup("both", [KeyboardInterrupt(), GeneratorExit()])


FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "coroutine function": (_coroutine, 8),
    "plain function in a thread": (_plain, 9),
    "plain function that gives an awaitable": (_gives_awaitable, 8),
    "coroutine action": (action(pack="t", ref="t.coroutine")(_coroutine), 8),
    "plain action": (action(pack="t", ref="t.plain")(_plain), 9),
    "function that reads its step": (_step_name, "2/charge (3)"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
async def test_result_of_try_is_recorded(name: str) -> None:
    function, result = FUNCTIONS[name]
    record = _record()
    assert await try_once(record, partial(function, 7), LIMIT) is None
    assert (record.status, record.error) == (COMPLETED, None)
    assert orjson.loads(record.result or "") == result
    assert IN_STEP.get() is None


@pytest.mark.parametrize("name", ["coroutine function", "coroutine action"])
async def test_coroutine_needs_no_thread(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of a worker may all be taken by plain functions."""
    monkeypatch.setattr("asyncio.to_thread", None)
    assert await try_once(_record(), partial(FUNCTIONS[name][0], 7), LIMIT) is None


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (_raises, "LookupError"),
        (_exits, "SystemExit"),
        (_stops, "StopIteration"),
        (_cancels, "asyncio.exceptions.CancelledError"),
        (_cancels_later, "asyncio.exceptions.CancelledError"),
        (_closes, "GeneratorExit"),
        (_groups, "BaseExceptionGroup"),
    ],
)
async def test_error_of_try_is_recorded(function: Any, kind: str) -> None:
    record = _record()
    error = await try_once(record, partial(function, 7), LIMIT)
    assert error is not None
    assert error.type == kind
    assert record.status == FAILED
    stored = orjson.loads(record.error or "")
    assert (stored["type"], stored["message"]) == (kind, error.message)
    assert function.__name__ in stored["traceback"]
    assert "final" not in stored
    assert IN_STEP.get() is None


async def test_cancelled_try_records_nothing() -> None:
    record = _record()
    task = asyncio.create_task(try_once(record, partial(asyncio.sleep, 60), LIMIT))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert record.status == STARTED


def test_closed_coroutine_of_try_records_nothing() -> None:
    """Python closes the coroutines of an event loop that is gone."""
    record, loop = _record(), asyncio.new_event_loop()
    closed = try_once(record, partial(asyncio.sleep, 60), LIMIT)
    context = copy_context()
    task = loop.create_task(closed, context=context)
    loop.run_until_complete(asyncio.sleep(0))
    context.run(closed.close)
    assert record.status == STARTED
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()


async def test_result_above_the_limit_is_an_error() -> None:
    record = _record()
    error = await try_once(record, lambda: "x" * LIMIT, LIMIT)
    assert error is not None
    assert record.status == FAILED


async def test_time_of_tries_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    instants = iter([100.0, 102.5])
    record = _record()
    monkeypatch.setattr("time.monotonic", lambda: next(instants, 0.0))
    await try_once(record, partial(_coroutine_at_once, 1), LIMIT)
    monkeypatch.undo()
    assert record.took == 12.5


async def _coroutine_at_once(n: int) -> int:
    return n


async def test_error_of_nonretryable_is_final() -> None:
    async def refuses() -> None:
        raise NonRetryable("no such customer")

    record = _record()
    await try_once(record, refuses, LIMIT)
    assert orjson.loads(record.error or "")["final"] is True
    assert "final" not in orjson.loads(error_json(TaskError("OSError", "away", retryable=True)))


POLICIES: dict[str, tuple[Any, int]] = {
    "none": (None, 1),
    "a number": (3, 3),
    "a mapping": ({"max_attempts": 4, "initial_delay": 2}, 4),
    "a policy": (RetryPolicy(max_attempts=5), 5),
}


@pytest.mark.parametrize("name", POLICIES)
def test_retry_of_step_is_a_policy(name: str) -> None:
    retry, attempts = POLICIES[name]
    assert policy_of(retry).max_attempts == attempts


FIXED = RetryPolicy(max_attempts=3, initial_delay=5, max_delay=60, backoff="fixed", jitter=0)
GROWING = RetryPolicy(
    max_attempts=9, initial_delay=5, max_delay=600, backoff="exponential", factor=2, jitter=0
)
DELAYS: dict[str, tuple[RetryPolicy, BaseException, int, float | None]] = {
    "first try of three": (FIXED, OSError(), 1, 5.0),
    "second try of three": (FIXED, OSError(), 2, 5.0),
    "last try": (FIXED, OSError(), 3, None),
    "growing delay": (GROWING, OSError(), 3, 20.0),
    "final error": (FIXED, NonRetryable("no"), 1, None),
    "delay that the error names": (FIXED, Retry(after=90), 1, 90.0),
    "no delay that the error names": (FIXED, Retry(after=0), 1, 0.0),
    "delay of an error in the last try": (FIXED, Retry(after=90), 3, None),
}


@pytest.mark.parametrize("name", DELAYS)
def test_delay_to_next_try(name: str) -> None:
    policy, error, tries, delay = DELAYS[name]
    assert delay_of(policy, TaskError.of(error), tries, 0.0) == delay
