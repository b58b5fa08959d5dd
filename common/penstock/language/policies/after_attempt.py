"""The outcome of an execution after an attempt of it: the one place that decides between a retry and the end. The worker
that ran the attempt asks it, and so does an executor that ends an attempt in the worker's place. Where the worker is gone,
the outcome of the attempt is unknown. Then the database's function `after_loss` decides what follows, as
`ending_of_unfinished` does where the worker lives."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from penstock.language.moves import ABANDONED, COMPLETED, FAILED, REQUESTED, TIMEOUT, WAITING
from penstock.language.policies.policies import Recovery, RetryPolicy
from penstock.run.outcomes import Outcome, TaskError


@dataclass(slots=True)  # a frozen one takes four times as long to make
class Ending:
    """The end of an attempt as it is written down: the execution's next status, and what goes with it."""

    status: str
    result: str | None = None
    error: str | None = None
    delay: float | None = 0.0
    """Seconds until the next attempt, on the database's clock. None: this one came to nothing, so the next takes its place in
    line."""
    until: datetime | None = None
    reason: str | None = None


DONE_WITH_NOTHING = Ending(COMPLETED, "null")
UNFINISHED = "its worker stopped before it had ended"
NOT_BEGUN = Ending(REQUESTED, delay=None, reason="handed back before it had begun")
"""Of an attempt of which nothing was done: whatever its action says of lost workers, it may run elsewhere."""


def ending_after(outcome: Outcome, recovery: Recovery, policy: RetryPolicy, failures: int) -> Ending:
    """The ending of an attempt that a worker has run or had run elsewhere, where it may be lost."""
    if outcome.kind == "lost" and outcome.error is not None:
        return _ending_of_lost(outcome.error, recovery, policy, failures)
    return ending_of(outcome, policy, failures)


def ending_of(outcome: Outcome, policy: RetryPolicy, failures: int) -> Ending:
    """The ending of an attempt. `failures` counts the attempts of this execution that failed before it."""
    if outcome.kind == "completed":
        json = outcome.result_json or b"null"
        return DONE_WITH_NOTHING if json == b"null" else Ending(COMPLETED, json.decode())
    if outcome.kind == "deferred":
        return Ending(
            REQUESTED,
            error=None,
            delay=outcome.delay or 0.0,
            until=outcome.until,
            reason="deferred",
            result=_carry(outcome.carry),
        )
    if outcome.kind == "inquiry":
        return Ending(WAITING, result=orjson.dumps(outcome.inquiry).decode(), reason="waits for an answer")
    if outcome.kind == "suspended":
        awaits = orjson.dumps({"awaits": outcome.awaited}).decode()
        return Ending(WAITING, result=awaits, reason="waits, and goes on where it was")
    error = outcome.error
    assert error is not None
    final = TIMEOUT if outcome.kind == "timed_out" else FAILED
    stored = _stored(error)
    if not error.is_retried(policy.allows) or failures + 1 >= policy.max_attempts:
        return Ending(final, error=stored, reason=f"{error.type}: {error.message}"[:200])
    delay = error.retry_after
    if delay is None:
        delay = policy.delay_before(failures + 2, random.random())
    return Ending(REQUESTED, error=stored, delay=delay, reason=f"retry after {error.type}")


def ending_of_overdue(seconds: float, policy: RetryPolicy, failures: int) -> Ending:
    """The ending of an attempt that ran past its time of so many seconds, and that its worker has not ended."""
    return ending_of(Outcome.timed_out(seconds), policy, failures)


def ending_of_unfinished(recovery: Recovery, why: str | None = None) -> Ending:
    """The ending of an attempt that its worker has to give up in the midst of it, since it stops, or `why` else. It may have had
    effects, so it runs again only where an attempt that is lost with its worker does. It counts neither as a failure nor as a
    loss."""
    why = why or UNFINISHED
    if recovery.on_worker_loss == "fail":
        error = orjson.dumps({"type": "WorkerLost", "message": why}).decode()
        return Ending(FAILED, error=error, reason=why)
    return Ending(REQUESTED, delay=None, reason=f"handed back: {why}")


def _ending_of_lost(error: TaskError, recovery: Recovery, policy: RetryPolicy, failures: int) -> Ending:
    """The ending of an attempt on a remote machine that is gone, while the worker that sent it there lives. Work that kills each
    machine that it comes to must end some time, so this one counts: as one of the `failures` before the next attempt, which is
    what a worker knows of."""
    stored, reason = _stored(error), f"{error.type}: {error.message}"[:200]
    if recovery.on_worker_loss == "fail":
        return Ending(FAILED, error=stored, reason=reason)
    if failures >= recovery.max_recoveries:
        return Ending(ABANDONED, error=stored, reason=reason)
    return Ending(
        REQUESTED, error=stored, delay=policy.delay_before(failures + 2, random.random()), reason=reason
    )


def _stored(error: TaskError) -> str:
    stored: dict[str, Any] = {"type": error.type, "message": error.message, "traceback": error.traceback}
    if error.steps:
        stored["steps"] = error.steps
    if error.told:
        stored["told"] = error.told
    return orjson.dumps(stored).decode()


def _carry(carry: Mapping[str, Any] | None) -> str | None:
    return orjson.dumps(carry).decode() if carry else None
