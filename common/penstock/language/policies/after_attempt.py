"""The outcome of an execution after one attempt: a retry, or its end. The worker that ran the attempt uses it, and so
does an executor that ends an attempt in the worker's place. If the worker is gone, the outcome of the attempt is
unknown. Then the database function `after_loss` decides, by the same rules as `ending_of_unfinished`."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import orjson

from penstock.language.moves import ABANDONED, COMPLETED, FAILED, REQUESTED, TIMEOUT, WAITING
from penstock.language.policies.policies import Recovery, RetryPolicy
from penstock.run.cut_texts import cut_end
from penstock.run.outcomes import Outcome, TaskError


@dataclass(slots=True)  # a frozen one takes four times as long to make
class Ending:
    """The end of an attempt as it is stored: the execution's next status, with its result, error, delay and reason."""

    status: str
    result: str | None = None
    error: str | None = None
    delay: float | None = 0.0
    """Seconds until the next attempt, on the database's clock. None: this attempt did nothing, so the next one takes
    its place in the lane."""
    until: datetime | None = None
    reason: str | None = None
    costs: Mapping[str, Decimal] | None = None
    """The true costs that the attempt reported, by unit."""


DONE_WITH_NOTHING = Ending(COMPLETED, "null")
NAMED_CAUSES = 4
"""The maximum number of causes that the reason of a wait names."""
UNFINISHED = "its worker stopped before it had ended"
NOT_BEGUN = Ending(REQUESTED, delay=None, reason="handed back before it had begun")
"""The ending of an attempt that did not begin. The execution may run elsewhere, whatever the action's recovery policy
is."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The end of an attempt that its worker has begun and gives up. `why`: the reason, or None if the worker stops."""

    why: str | None = None


End = Outcome | Ending | Unfinished
"""The end of an attempt as a worker reports it: its outcome, an ending that is not an outcome, or its being given up."""


def ending_after(end: End, recovery: Recovery, policy: RetryPolicy, failures: int) -> Ending:
    """Return the ending of an attempt that a worker ran, or had run on a remote machine, where it may be lost."""
    if isinstance(end, Ending):
        return end
    if isinstance(end, Unfinished):
        return ending_of_unfinished(recovery, end.why)
    if end.kind == "lost" and end.error is not None:
        return _ending_of_lost(end.error, recovery, policy, failures)
    return ending_of(end, policy, failures)


def ending_of(outcome: Outcome, policy: RetryPolicy, failures: int) -> Ending:
    """Return the ending of an attempt. `failures` counts the failed attempts of this execution before it.

    A failed attempt is retried if the policy allows it. The error's own `retry_after` overrides the policy's delay.
    """
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
    if outcome.kind == "later":
        outside = orjson.dumps({"outside": outcome.outside}).decode()
        return Ending(WAITING, result=outside, reason="waits for a callback")
    if outcome.kind == "suspended":
        awaits = orjson.dumps({"awaits": outcome.awaited}).decode()
        return Ending(
            WAITING,
            result=awaits,
            reason=_wait_reason(outcome.awaited or {}),
        )
    error = outcome.error
    assert error is not None
    final = TIMEOUT if outcome.kind == "timed_out" else FAILED
    stored = _stored(error)
    if not error.is_retried(policy.allows) or failures + 1 >= policy.max_attempts:
        return Ending(final, error=stored, reason=cut_end(f"{error.type}: {error.message}", 200))
    delay = error.retry_after
    if delay is None:
        delay = policy.delay_before(failures + 2, random.random())
    return Ending(REQUESTED, error=stored, delay=delay, reason=f"retry after {error.type}")


def _wait_reason(awaited: Mapping[str, Any]) -> str:
    """Return the reason of a durable function's wait: the causes that can end it, of which the first few are named."""
    causes = list(awaited["causes"])
    if len(causes) > NAMED_CAUSES:
        causes = [*causes[: NAMED_CAUSES - 1], f"{len(causes) - NAMED_CAUSES + 1} others"]
    return cut_end(f"waits, without a worker, for {' or '.join(causes)}", 200)


def ending_of_overdue(seconds: float, policy: RetryPolicy, failures: int) -> Ending:
    """Return the ending of an attempt that exceeded its timeout of `seconds` and was not ended by its worker."""
    return ending_of(Outcome.timed_out(seconds), policy, failures)


def ending_of_unfinished(recovery: Recovery, why: str | None = None) -> Ending:
    """Return the ending of a running attempt that its worker gives up, because it stops or for the reason `why`.

    The attempt may have had effects. So it runs again only if a lost attempt would (`recovery`). It counts neither as
    a failure nor as a loss.
    """
    why = why or UNFINISHED
    if recovery.on_worker_loss == "fail":
        error = orjson.dumps({"type": "WorkerLost", "message": why}).decode()
        return Ending(FAILED, error=error, reason=why)
    return Ending(REQUESTED, delay=None, reason=f"handed back: {why}")


def _ending_of_lost(error: TaskError, recovery: Recovery, policy: RetryPolicy, failures: int) -> Ending:
    """Return the ending of an attempt on a remote machine that is gone, while the worker that sent it there lives.

    Work that kills each machine must end some time. So the attempt counts as one of the `failures` before the next
    attempt, the only count that a worker knows.
    """
    stored, reason = _stored(error), cut_end(f"{error.type}: {error.message}", 200)
    if recovery.on_worker_loss == "fail":
        return Ending(FAILED, error=stored, reason=reason)
    if failures >= recovery.max_recoveries:
        return Ending(ABANDONED, error=stored, reason=reason)
    return Ending(
        REQUESTED, error=stored, delay=policy.delay_before(failures + 2, random.random()), reason=reason
    )


ANSWER_CAP, ANSWER_LINE = 2048, 200
"""The characters that are stored of the body of a failed HTTP call, as a text and in the message of the error."""


def _stored(error: TaskError) -> str:
    stored: dict[str, Any] = {"type": error.type, "message": error.message, "traceback": error.traceback}
    if error.steps:
        stored["steps"] = error.steps
    if error.told:
        stored["told"] = error.told
    if error.cause:
        stored["cause"] = error.cause
    if error.answer:
        body = str(error.answer["body"])
        stored["answer"] = {"status": error.answer["status"], "body": body[:ANSWER_CAP]}
        if begin := " ".join(body[:ANSWER_CAP].split()):
            stored["message"] += f": {begin if len(begin) <= ANSWER_LINE else begin[:ANSWER_LINE] + '…'}"
    return orjson.dumps(stored).decode()


def _carry(carry: Mapping[str, Any] | None) -> str | None:
    return orjson.dumps(carry).decode() if carry else None
