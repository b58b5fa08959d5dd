"""The exceptions and results with which an action steers its execution.

    raise Retry(after=30, message="the bank is closed")
    raise NonRetryable("no such customer")
    raise Defer(delay=60, state={"page": 7})
    return AskInquiry("Deploy to production?", schema={"type": "boolean"}, assignee="ops")
    answer = await ask("Deploy to production?", schema={"type": "boolean"})

**Waiting without a worker.** `Defer`, `defer_until`, `sleep` and `ask` end the attempt and give its slot and its
worker back. Afterwards the action runs again *from its start*, on any worker, so that the wait survives restarts. So
the code before the wait must be safe to repeat, and `state` (JSON) carries what the next run needs. A deferral is not
a failure, and does not count against the attempts.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from penstock.errors import OutsideRun
from penstock.run.context import CURRENT
from penstock.run.durations import HINT, Span, WrongDuration
from penstock.run.durations import seconds as seconds_of


class Steering(Exception):
    """The base of instructions of an action about its execution, which are not faults. Raise one or return it."""


class Retry(Steering):
    """Retry the attempt, even if the retry policy does not list the error. The number of attempts stays bounded.

    `after` is a duration: seconds, or a text such as "5s". None leaves the delay to the retry policy.
    """

    def __init__(self, after: Span | None = None, message: str = "") -> None:
        super().__init__(message or "the action asked for a retry")
        self.after = None if after is None else _seconds(after, "after")


class NonRetryable(Steering):
    """Fail for good. No attempt follows, whatever the retry policy says."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or "the action said that a retry is of no use")


class Defer(Steering):
    """Run the action again from its start, at `until` (an aware datetime) or after `delay` (90, "5m"), on the database's
    clock.

    `state` is JSON that the next run reads as `current().state`.
    """

    def __init__(
        self, *, until: datetime | None = None, delay: Span | None = None, state: Any = None
    ) -> None:
        if (until is None) == (delay is None):
            raise TypeError("Defer takes exactly one of until and delay")
        if until is not None and until.tzinfo is None:
            raise ValueError("Defer(until=...) needs a datetime with a time zone")
        self.until = until
        self.delay = None if delay is None else _seconds(delay, "delay")
        super().__init__(f"deferred for {self.delay:g} s" if until is None else f"deferred until {until}")
        self.carry: dict[str, Any] = {**_carried(), "state": state}


class AskInquiry(Steering):
    """Wait for a human's answer, without holding a worker. The answer becomes the result of this execution.

    With `resume` the action instead runs again from its start, and finds all its answers in `current().answers`.
    `schema` is a JSON Schema for the answer. After `timeout` (90, "1d") `default` is the answer; without a default the
    execution ends as `timeout`.
    """

    def __init__(
        self,
        prompt: str,
        *,
        schema: Mapping[str, Any] | None = None,
        assignee: str | None = None,
        timeout: Span | None = None,
        default: Any = None,
        resume: bool = False,
    ) -> None:
        super().__init__(prompt)
        self.request: dict[str, Any] = {
            "prompt": prompt,
            "schema": None if schema is None else dict(schema),
            "assignee": assignee,
            "timeout": None if timeout is None else _seconds(timeout, "timeout"),
            "default": default,
        }
        if resume:
            self.request["resume"] = _carried()


class Later(Steering):
    """Wait until an outside system completes this execution, without holding a worker or a slot.

    `id` is the id by which a webhook completes it (`completes`), unique in the tenant. Without one, only the address of
    `current().callback()` does. After `timeout` (90, "2d") the execution ends as `timeout`, and also if `heartbeat`
    passes without a progress or a heartbeat. The action does not run again, unless it is failed from outside and its retry
    policy allows another attempt.
    """

    def __init__(
        self,
        id: str | None = None,
        *,
        timeout: Span | None = None,
        heartbeat: Span | None = None,
    ) -> None:
        super().__init__(f"waits for {id or 'its callback'}")
        if id is not None and (not isinstance(id, str) or not 0 < len(id) <= 1000):
            raise ValueError(f"id must be a text of 1 to 1,000 characters, not {id!r:.80}")
        self.outside: dict[str, Any] = {
            "id": id,
            "timeout": None if timeout is None else _seconds(timeout, "timeout"),
            "heartbeat": None if heartbeat is None else _seconds(heartbeat, "heartbeat"),
        }


def later(
    id: str | None = None,
    *,
    timeout: Span | None = None,
    heartbeat: Span | None = None,
) -> Later:
    """Return a Later with these options: `return later("gh:run:123", timeout="2d")`."""
    return Later(id, timeout=timeout, heartbeat=heartbeat)


async def ask(
    prompt: str,
    *,
    schema: Mapping[str, Any] | None = None,
    assignee: str | None = None,
    timeout: Span | None = None,
    default: Any = None,
) -> Any:
    """Ask a human, with the options of AskInquiry, and return the answer. The first call puts the action off. When the
    action runs again with the answer, the call returns it.

    Inquiries are told apart by their order, so ask them in the same order in every run. Raises AskInquiry if the answer
    is not known yet. In a plain function, raise `AskInquiry(..., resume=True)` and read `current().answers`.
    """
    run = CURRENT.get()
    if run is None or run.items is not None:
        raise OutsideRun(
            "a question needs a run",
            hint="Call penstock.run.steering.ask inside an action. An action with batches returns an AskInquiry for the "
            "item that has the question.",
        )
    run.inquiries += 1
    answers = run.carry.get("answers", ())
    if run.inquiries <= len(answers):
        return answers[run.inquiries - 1]
    raise AskInquiry(prompt, schema=schema, assignee=assignee, timeout=timeout, default=default, resume=True)


def sleep(seconds: Span) -> None:
    """Sleep durably. The first call defers the action. When the action runs again, the call returns at once.

    Sleeps are told apart by their order, so call them in the same order in every run. Raises Defer at the first call.
    """
    run = CURRENT.get()
    if run is None or run.items is not None:
        raise OutsideRun(
            "a durable sleep works only inside an attempt of an action",
            hint="Call penstock.run.steering.sleep inside an action. In a batch, return a Defer for the item instead.",
        )
    run.slept += 1
    if run.slept > int(run.carry.get("sleeps", 0)):
        defer = Defer(delay=seconds, state=run.carry.get("state"))
        defer.carry["sleeps"] = run.slept
        raise defer


async def defer_until(
    condition: datetime | Callable[[], bool | Awaitable[bool]], *, every: Span = 10.0
) -> None:
    """Continue once `condition()` is true, and until then defer the action for `every` at a time.

    If `condition` is an instant (an aware datetime), continue once it has passed on the database's clock: the action is
    deferred once, and at once runs again for an instant that has passed already. Raises Defer until then.
    """
    if isinstance(condition, datetime):
        if not _has_passed(condition):
            defer = Defer(until=condition, state=_carried().get("state"))
            defer.carry["until"] = condition.isoformat()
            raise defer
        return
    met = condition()
    if inspect.isawaitable(met):
        met = await met
    if not met:
        raise Defer(delay=every, state=_carried().get("state"))


def _has_passed(instant: datetime) -> bool:
    """Return whether an earlier run of the action was deferred to this instant or a later one. The worker's own clock, which
    may be wrong, decides only outside a run."""
    if CURRENT.get() is None:
        return instant <= datetime.now(instant.tzinfo)
    reached = _carried().get("until")
    return reached is not None and instant <= datetime.fromisoformat(reached)


def _carried() -> dict[str, Any]:
    run = CURRENT.get()
    return {} if run is None else dict(run.carry)


def _seconds(value: Span, name: str) -> float:
    try:
        return float(seconds_of(value))
    except WrongDuration as wrong:
        is_typed = isinstance(value, int | float | str | timedelta) and not isinstance(value, bool)
        kind = ValueError if is_typed else TypeError
        raise kind(f"{name} {wrong}. {HINT}") from None
