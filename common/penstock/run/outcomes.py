"""The outcome of an attempt, and the stored form of an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

import orjson

from penstock.bounds import MESSAGE_CAP, TRACEBACK_CAP
from penstock.errors import PenstockError, ResultNotStorable
from penstock.run import result_encoding
from penstock.run.cut_texts import shortened, storable
from penstock.run.failures import failed_steps, leaves, steering_of, verdict_of
from penstock.run.root_cause import cause_of_exception
from penstock.run.steering import AskInquiry, Defer, Later, Steering
from penstock.run.tracebacks import traceback_text

Kind = Literal[
    "completed", "failed", "timed_out", "deferred", "inquiry", "later", "suspended", "lost", "batch"
]


TYPE_CAP = 500
"""The maximum length of the type of an error, in characters."""


@dataclass(frozen=True, slots=True)
class TaskError:
    """The error that failed an attempt, in a form that can be stored.

    `type` is the name of its class (`ValueError`, `acme.errors.Declined`). `kinds` has the names of the class and its
    bases, for a retry policy that lists errors. `members` has the same for each error of an exception group.
    `retryable` is True or False if the action decided that, and None if the retry policy decides. `retry_after` is in
    seconds, None for the policy's delay. `steps` are the steps of a durable function that caused it, by name and
    ordinal. `told` is the number of the last result that the durable function got before it. `cause` is the failure inside
    that it reports (`penstock.run.root_cause`). `answer` has the `status` and the begin of the `body` of a failed HTTP
    call.
    """

    type: str
    message: str
    traceback: str = ""
    retryable: bool | None = None
    retry_after: float | None = None
    kinds: tuple[str, ...] = ()
    members: tuple[tuple[str, ...], ...] = ()
    steps: tuple[tuple[str, int], ...] = ()
    told: int = 0
    cause: Mapping[str, Any] | None = None
    answer: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", text(self.type, TYPE_CAP))
        object.__setattr__(self, "message", text(self.message, MESSAGE_CAP))
        object.__setattr__(self, "traceback", text(self.traceback, TRACEBACK_CAP))
        if self.answer is not None:
            # Keep more than is stored. The body is cut to its stored length after its secrets are masked, so that no
            # part of a secret remains at the cut.
            body = text(str(self.answer.get("body") or ""), TRACEBACK_CAP)
            object.__setattr__(self, "answer", {"status": self.answer.get("status"), "body": body})
        if not self.kinds:
            object.__setattr__(self, "kinds", (self.type,))

    @classmethod
    def of(cls, error: BaseException, *, retryable: bool | None = None) -> TaskError:
        """Return the TaskError of an exception. `Retry` and `NonRetryable` decide themselves about a retry."""
        verdict, delay = verdict_of(error)
        try:
            message = str(error)
            if isinstance(error, PenstockError) and error.hint:
                message = f"{message.removesuffix('.')}. {error.hint}"
        except BaseException as unprintable:
            message = f"<str() of the error failed with {type(unprintable).__name__}>"
        return cls(
            type=name_of(type(error)),
            message=message,
            traceback=traceback_text(error),
            retryable=retryable if verdict is None else verdict,
            retry_after=delay,
            kinds=kinds_of(error),
            members=tuple(kinds_of(leaf) for leaf in leaves(error))
            if isinstance(error, BaseExceptionGroup)
            else (),
            steps=failed_steps(error),
            cause=cause_of_exception(error),
        )

    def followed_by(self, text: str) -> TaskError:
        """Return the error with a text behind its message, and behind that of its cause."""
        cause = self.cause and {**self.cause, "message": f"{self.cause.get('message', '')} {text}"}
        return replace(self, message=f"{self.message} {text}", cause=cause)

    def is_retried(self, allows: Callable[[Sequence[str]], bool]) -> bool:
        """Return whether the error is retried while attempts are left. The error itself decides, or else the policy's
        `allows`. A group is retried if each of its errors would be."""
        if self.retryable is not None:
            return self.retryable
        return all(allows(kinds) for kinds in self.members or (self.kinds,))


@dataclass(slots=True)  # a frozen one takes three times as long to create
class Outcome:
    """The outcome of an attempt; treat it as read-only. Only the fields of its `kind` are set.

    `completed`: `result_json`, the result as storable JSON. `failed`, `timed_out`: `error`. `deferred`: `until` or
    `delay` (seconds on the database's clock), and `carry`, JSON for the next run of this execution. `inquiry`:
    `inquiry` (prompt, schema, assignee, timeout in seconds, default). `later`: `outside` (id,
    timeout and heartbeat in seconds). `suspended`: `awaited`, what a durable function
    waits for (children, until, signals). `lost`: `error`; the remote machine that ran the attempt is gone, and its
    effects are unknown. `batch`: `items`, an outcome for each item of the call. `costs`, of any kind: the true costs that the
    attempt reported where it ran, by unit.
    """

    kind: Kind
    result_json: bytes | None = None
    error: TaskError | None = None
    until: datetime | None = None
    delay: float | None = None
    carry: dict[str, Any] | None = None
    inquiry: dict[str, Any] | None = None
    awaited: dict[str, Any] | None = None
    costs: dict[str, Decimal] | None = None
    outside: dict[str, Any] | None = None
    items: list[Outcome] | None = None

    @property
    def result(self) -> Any:
        """Return the decoded result of a completed attempt."""
        return None if self.result_json is None else orjson.loads(self.result_json)

    @classmethod
    def returned(cls, value: object, limit: int = result_encoding.RESULT_LIMIT) -> Outcome:
        """Return the outcome of a function that returned `value`. If it cannot be stored, the outcome is failed, as
        ResultNotStorable."""
        if value is None:
            return NOTHING
        if isinstance(value, Steering):
            return cls.raised(value, limit=limit)
        try:
            return cls("completed", result_encoding.encode(value, limit))
        except ResultNotStorable as error:
            return cls.failed(error)

    @classmethod
    def returned_json(cls, encoded: bytes, limit: int = result_encoding.RESULT_LIMIT) -> Outcome:
        """Return the outcome of a result that is already JSON, from a command or another machine."""
        try:
            return cls("completed", result_encoding.check(encoded, limit))
        except ResultNotStorable as error:
            return cls.failed(error)

    @classmethod
    def raised(
        cls,
        error: BaseException,
        *,
        retryable: bool | None = None,
        limit: int = result_encoding.RESULT_LIMIT,
    ) -> Outcome:
        """Return the outcome of a function that raised `error`. The carry of a Defer and the request of an AskInquiry
        must be storable, as a result must."""
        try:
            steering = steering_of(error)
            if isinstance(steering, Defer):
                result_encoding.encode(steering.carry, limit, "the state of Defer")
                return cls("deferred", until=steering.until, delay=steering.delay, carry=steering.carry)
            if isinstance(steering, AskInquiry):
                result_encoding.encode(steering.request, limit, "the question")
                return cls("inquiry", inquiry=steering.request)
            if isinstance(steering, Later):
                result_encoding.encode(steering.outside, limit, "the id of `later`")
                return cls("later", outside=steering.outside)
        except ResultNotStorable as unstorable:
            return cls.failed(unstorable)
        return cls("failed", error=TaskError.of(error, retryable=retryable))

    @classmethod
    def failed(cls, error: TaskError | BaseException) -> Outcome:
        return cls("failed", error=error if isinstance(error, TaskError) else TaskError.of(error))

    @classmethod
    def refused(cls, error: Exception, *, retryable: bool | None = None) -> Outcome:
        """Return the outcome of an action without code that failed with `error` of its executor. The outcome has no
        traceback, which would show the executor's code alone."""
        return cls("failed", error=replace(TaskError.of(error, retryable=retryable), traceback=""))

    @classmethod
    def timed_out(cls, seconds: float) -> Outcome:
        """Return the outcome of an attempt that exceeded its time of `seconds` and was ended."""
        error = TaskError("TimeoutError", f"the attempt took longer than its {seconds:g} s and was ended")
        return cls("timed_out", error=error)

    @classmethod
    def lost(cls, message: str) -> Outcome:
        """Return the outcome of an attempt that was lost with the machine that ran it. `on_worker_loss` of the action
        decides what follows."""
        return cls("lost", error=TaskError("WorkerLost", message))


NOTHING = Outcome("completed", result_encoding.NULL)
"""The outcome of an action that returns None, created once."""


def kinds_of(error: BaseException) -> tuple[str, ...]:
    """Return the names of an error's class and of its base classes."""
    return tuple(name_of(kind) for kind in type(error).__mro__ if kind is not object)


def name_of(kind: type[BaseException]) -> str:
    """Return the name of a class: `ValueError`, `ResultNotStorable`, `acme.errors.Declined`. The module is left
    out for built-in classes and those of Penstock."""
    if kind.__module__.partition(".")[0] in ("builtins", "penstock", "penstock_worker"):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def text(value: str, limit: int) -> str:
    """Return `value` in a form that PostgreSQL stores (no NUL, no lone surrogates), with at most `limit` characters."""
    return storable(shortened(value, limit))
