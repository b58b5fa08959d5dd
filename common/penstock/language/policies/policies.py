"""The policies for attempts that fail, take too long, or are lost with their worker."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_serializer, model_validator

from penstock.language.terms.column_ranges import INTEGER
from penstock.language.terms.durations import Duration, PositiveDuration
from penstock.language.terms.options import Count, Items, Options, Wrong
from penstock.run.outcomes import name_of

_TYPE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def _names(value: object) -> object:
    """Return exception classes and names, one or several, as sorted names. Their order has no meaning."""
    several = value if isinstance(value, list | tuple | set | frozenset) else [value]
    names = {_name(item) for item in several}
    return tuple(sorted(names))


def _name(value: object) -> str:
    if isinstance(value, type) and issubclass(value, BaseException):
        return name_of(value)
    if isinstance(value, str) and _TYPE.fullmatch(value):
        return value
    hint = "Write 'TimeoutError', 'httpx.ConnectError', or in Python the exception class itself."
    raise Wrong("must name types of errors", hint)


ErrorTypes = Annotated[Items[str], BeforeValidator(_names)]


CLOACINA_WORDS: Mapping[str, str] = {"backoff_factor": "factor", "retry_on_errors": "retry_on"}
"""Second names of options of `RetryPolicy`, and their first ones."""


class RetryPolicy(Options):
    """The policy that decides whether and when a failed attempt is followed by another. The names follow Cloacina's
    RetryPolicy.

    `Recovery` bounds the attempts that are lost with their worker. An error's own `retry_after` overrides the delays
    of this policy. Cloacina's words `backoff_factor` and `retry_on_errors` are read as `factor` and `retry_on`.
    """

    thing: ClassVar[str] = "retry"

    max_attempts: Count = 1
    """The number of attempts, including the first. 1 means no retry. Only failed attempts count."""
    initial_delay: Duration = 1
    """The delay before the second attempt, in seconds."""
    max_delay: Duration = 60
    """The upper bound of each delay in seconds, jitter included."""
    backoff: Literal["fixed", "linear", "exponential"] = "exponential"
    """The growth of delays. fixed: always `initial_delay`. linear: 1, 2, 3 ... times it. exponential: times `factor`
    for each attempt."""
    factor: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)] = 2.0
    """The factor of exponential backoff."""
    jitter: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.25
    """The random part of a delay: 0.25 draws between 75 and 100 % of it. The random part shortens a delay and never
    lengthens it, so that retries spread out at `max_delay` too."""
    retry_on: ErrorTypes = ()
    """The types of errors that are retried, including as base classes. Empty means all. See `allows`."""
    never_on: ErrorTypes = ()
    """The types of errors that are not retried, even if `retry_on` names them."""

    @classmethod
    def fold(cls, values: dict[str, Any]) -> dict[str, Any]:
        for word, name in CLOACINA_WORDS.items():
            if word in values:
                if name in values:
                    raise Wrong(f"{word} and {name} both given", f"They are one option: write {name} alone.")
                values[name] = values.pop(word)
        return values

    @classmethod
    def names(cls) -> list[str]:
        return [*super().names(), *CLOACINA_WORDS]

    @model_validator(mode="before")
    @classmethod
    def _from_a_number(cls, value: Any) -> Any:
        """Expand the short form: `retry=3` means `retry={"max_attempts": 3}`."""
        if isinstance(value, int) and not isinstance(value, bool):
            return {"max_attempts": value}
        if not isinstance(value, Mapping | RetryPolicy):
            raise Wrong("is not a retry policy", "Write 3, or {'max_attempts': 3, 'initial_delay': '10s'}.")
        return value

    @model_validator(mode="after")
    def _relations(self) -> Self:
        if self.initial_delay > self.max_delay:
            raise Wrong(
                f"initial_delay ({self.initial_delay:g} s) is longer than max_delay ({self.max_delay:g} s)",
                "Raise max_delay.",
            )
        return self

    def delay_before(self, attempt: int, random: float) -> float:
        """Return the seconds to wait before attempt number `attempt` (2 is the first retry). `random` is drawn from 0
        to 1."""
        retry = attempt - 1
        if retry < 1:
            return 0.0
        grown = 1.0
        if self.backoff == "linear":
            grown = float(retry)
        elif self.backoff == "exponential":
            try:
                grown = self.factor ** (retry - 1)
            except OverflowError:
                grown = float("inf")
        longest = min(self.initial_delay * grown, self.max_delay) if self.initial_delay else 0.0
        return longest * (1 - self.jitter * random)

    def allows(self, error_type_names: Sequence[str]) -> bool:
        """Return whether an error may be retried. `error_type_names` are the names of its class and its base classes.

        An entry matches a name that equals it, or that ends with it after a dot. So `ConnectError` and
        `httpx.ConnectError` both match `httpx.ConnectError`.
        """
        if _any_fits(self.never_on, error_type_names):
            return False
        return not self.retry_on or _any_fits(self.retry_on, error_type_names)


def _any_fits(entries: Sequence[str], names: Sequence[str]) -> bool:
    return any(name == entry or name.endswith(f".{entry}") for entry in entries for name in names)


DEFAULT_ATTEMPT_TIMEOUT = 300.0
"""The default timeout of an attempt in seconds: the field's usual five minutes."""


class Timeouts(Options):
    """Timeouts in seconds. None: no bound. If two apply, the one that expires first ends the work with status
    `timeout`. Only an exceeded `attempt` may be retried. docs/timeouts.md has all of them in one table."""

    thing: ClassVar[str] = "timeouts"

    attempt: PositiveDuration | None = DEFAULT_ATTEMPT_TIMEOUT
    """The time for one attempt, from its claim."""
    schedule_to_start: PositiveDuration | None = None
    """The time for each wait for a worker, from being ready or admitted by its limits, to being claimed."""
    queued: PositiveDuration | None = None
    """The time for each wait for a slot, from entering a lane to being admitted."""
    total: PositiveDuration | None = None
    """The time for the whole execution, retries and waits included, from its planned start."""
    waiting: PositiveDuration | None = None
    """The time for the answer to an inquiry."""

    @model_serializer
    def _those_named(self) -> dict[str, float | None]:
        """Return the timeouts that were set, even if to their defaults. A task's timeouts replace those of its action."""
        return {name: getattr(self, name) for name in Timeouts.model_fields if name in self.model_fields_set}


class Recovery(Options):
    """The policy for attempts that lose their worker."""

    on_worker_loss: Literal["rerun", "fail"] = "rerun"
    """The reaction to a lost worker. fail: for work that must run at most once, whatever its effects were when the
    worker died."""
    max_recoveries: Annotated[int, Field(ge=0, le=INTEGER)] = 3
    """The number of lost attempts that are replaced. After one more, the execution is abandoned."""


class Policies(Options):
    """The policies for retries, timeouts and recovery, as they are stored with an action."""

    retry: RetryPolicy = RetryPolicy()
    timeouts: Timeouts = Timeouts()
    recovery: Recovery = Recovery()

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Policies:
        """Return the policies in the stored body of an action, a task or a schedule."""
        return Policies.model_validate({name: body[name] for name in Policies.model_fields if body.get(name)})
