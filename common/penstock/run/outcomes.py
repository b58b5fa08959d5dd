"""What an attempt came to: its outcome, and for a failure the error as it is kept with the attempt."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import orjson

from penstock.bounds import MESSAGE_CAP, TRACEBACK_CAP
from penstock.errors import PenstockError, ResultNotStorable, StepFailed
from penstock.run import results
from penstock.run.steering import AskInquiry, Defer, NonRetryable, Retry, Steering

Kind = Literal["completed", "failed", "timed_out", "deferred", "inquiry", "suspended", "lost"]


@dataclass(frozen=True, slots=True)
class TaskError:
    """Why an attempt failed, in words that can be stored.

    `type` is the class's name (`ValueError`, `acme.errors.Declined`); `kinds` names it and all its bases, for
    a policy that retries on listed errors. `retryable` is True or False where the action said so, and None
    where the retry policy decides. `retry_after` is in seconds, None for the policy's own delay. `step`: the step of a durable
    function that failed, by name and ordinal."""

    type: str
    message: str
    traceback: str = ""
    retryable: bool | None = None
    retry_after: float | None = None
    kinds: tuple[str, ...] = ()
    step: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", text(self.message, MESSAGE_CAP))
        object.__setattr__(self, "traceback", text(self.traceback, TRACEBACK_CAP))
        if not self.kinds:
            object.__setattr__(self, "kinds", (self.type,))

    @classmethod
    def of(cls, error: BaseException, *, retryable: bool | None = None) -> TaskError:
        """The error of an exception. `Retry` and `NonRetryable` say themselves whether to retry."""
        after = None
        if isinstance(error, Retry):
            retryable, after = True, error.after
        elif isinstance(error, NonRetryable | ResultNotStorable):
            retryable = False
        try:
            message = str(error)
            if isinstance(error, PenstockError) and error.hint:
                message = f"{message}. {error.hint}"
        except Exception as unprintable:
            message = f"<str() of the error failed with {type(unprintable).__name__}>"
        return cls(
            type=name_of(type(error)),
            message=message,
            traceback=_trace(error),
            retryable=retryable,
            retry_after=after,
            kinds=tuple(name_of(kind) for kind in type(error).__mro__ if kind is not object),
            step=(error.name, error.ordinal) if isinstance(error, StepFailed) else None,
        )


@dataclass(slots=True)  # not frozen: that would make each of them cost three times as much
class Outcome:
    """How an attempt ended; treat it as read-only. Exactly the fields that belong to its `kind` are set.

    `completed`: `result_json`, the result as storable JSON. `failed`, `timed_out`: `error`. `deferred`:
    `until` or `delay` (seconds on the database's clock), and `carry`, JSON to hand to the next run of this
    execution as it is. `inquiry`: `inquiry`, the question (prompt, schema, assignee, timeout in seconds,
    default). `suspended`: `awaited`, what a durable function waits for (children, until, signals). `lost`: `error`; the machine
    elsewhere that ran it is gone, and nobody knows what came of it."""

    kind: Kind
    result_json: bytes | None = None
    error: TaskError | None = None
    until: datetime | None = None
    delay: float | None = None
    carry: dict[str, Any] | None = None
    inquiry: dict[str, Any] | None = None
    awaited: dict[str, Any] | None = None

    @property
    def result(self) -> Any:
        """The result of a completed attempt, decoded."""
        return None if self.result_json is None else orjson.loads(self.result_json)

    @classmethod
    def returned(cls, value: object, limit: int = results.RESULT_LIMIT) -> Outcome:
        """The outcome of a function that returned `value`; failed as ResultNotStorable if it cannot be."""
        if value is None:
            return NOTHING
        if isinstance(value, Steering):
            return cls.raised(value, limit=limit)
        try:
            return cls("completed", results.encode(value, limit))
        except ResultNotStorable as error:
            return cls.failed(error)

    @classmethod
    def returned_json(cls, encoded: bytes, limit: int = results.RESULT_LIMIT) -> Outcome:
        """The same for a result that is JSON already, from a command or another machine."""
        try:
            return cls("completed", results.check(encoded, limit))
        except ResultNotStorable as error:
            return cls.failed(error)

    @classmethod
    def raised(
        cls,
        error: BaseException,
        *,
        retryable: bool | None = None,
        limit: int = results.RESULT_LIMIT,
    ) -> Outcome:
        """The outcome of a function that raised `error`. The carry of a Defer and the request of an
        AskInquiry have to be storable like a result."""
        try:
            if isinstance(error, Defer):
                results.encode(error.carry, limit)
                return cls("deferred", until=error.until, delay=error.delay, carry=error.carry)
            if isinstance(error, AskInquiry):
                results.encode(error.request, limit)
                return cls("inquiry", inquiry=error.request)
        except ResultNotStorable as unstorable:
            return cls.failed(unstorable)
        return cls("failed", error=TaskError.of(error, retryable=retryable))

    @classmethod
    def failed(cls, error: TaskError | BaseException) -> Outcome:
        return cls("failed", error=error if isinstance(error, TaskError) else TaskError.of(error))

    @classmethod
    def timed_out(cls, seconds: float) -> Outcome:
        """The attempt went over its time; the work was ended."""
        error = TaskError("TimeoutError", f"the attempt took longer than its {seconds:g} s and was ended")
        return cls("timed_out", error=error)

    @classmethod
    def lost(cls, message: str) -> Outcome:
        """What ran the attempt elsewhere is gone with it: `on_worker_loss` of the action says what follows."""
        return cls("lost", error=TaskError("WorkerLost", message))


NOTHING = Outcome("completed", results.NULL)
"""The outcome of an action that returns None, made once."""


def _trace(error: BaseException) -> str:
    """The traceback from the action's own first frame on."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__") == "penstock.run.calls":
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))


def name_of(kind: type[BaseException]) -> str:
    """`ValueError`, `ResultNotStorable`, `acme.errors.Declined`: no module for what is common."""
    if kind.__module__.partition(".")[0] in ("builtins", "penstock", "penstock_worker"):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def text(value: str, limit: int) -> str:
    """`value` as PostgreSQL takes it (no NUL, no lone surrogates), at most `limit` characters."""
    if len(value) > limit:
        half = limit // 2
        value = f"{value[:half]}\n... {len(value) - 2 * half:,} characters left out ...\n{value[-half:]}"
    return value.replace("\0", "�").encode("utf-8", "replace").decode()
