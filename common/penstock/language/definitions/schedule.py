"""Schedules, which start an action at the instants of a cron expression, at an interval, or once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

import orjson
from pydantic import BeforeValidator, Field, StrictBool, model_validator

from penstock.errors import DefinitionError
from penstock.language.definitions.declaration import Declaration, declare
from penstock.language.definitions.qualified_name import Ref
from penstock.language.definitions.rule import Priority, Tenant
from penstock.language.expressions.template_checks import Templates
from penstock.language.policies.policies import RetryPolicy
from penstock.language.schedules import Spec, find_zone
from penstock.language.schedules.cron import WORDS
from penstock.language.schedules.cron_fields import parse_fields
from penstock.language.schedules.reserved_context import RESERVED
from penstock.language.terms.durations import Duration, PositiveDuration, as_text, positive_seconds
from penstock.language.terms.options import Count, Options, Wrong, did_you_mean
from penstock.language.terms.sources import caller, of_frame
from penstock.run import instants

MOST_CONTEXT = 32 * 1024
"""The maximum size of a schedule's context, in bytes of JSON. Programs get the context in one environment variable."""
YEARS = range(2, 9000)
"""The years of instants. Each zone has an equal instant in UTC for all of them."""
Overlap = Literal["allow", "skip", "queue", "replace"]
"""The reaction to a fire that is due while the run of the previous fire has not ended."""


def _instant(value: object) -> str:
    """Return a datetime, or its ISO text, as ISO text. An instant with a zone is converted to UTC."""
    hint = "Write '2030-01-31T09:00:00+01:00', or a datetime."
    try:
        when = instants.instant(value) if isinstance(value, str | int | float) else value
    except ValueError as error:
        raise Wrong(f"is not an instant: {error}", hint) from None
    if not isinstance(when, datetime):
        raise Wrong("is not an instant", hint)
    if when.year not in YEARS:
        raise Wrong("is out of range", f"Give an instant between the years {YEARS[0]} and {YEARS[-1]}.")
    return (when.astimezone(UTC) if when.tzinfo else when).isoformat()


def _aware_instant(value: object) -> str:
    text = _instant(value)
    if not text.endswith("+00:00"):
        raise Wrong(
            "is an instant without a zone", "Write '2030-01-31T09:00:00+01:00', or an aware datetime."
        )
    return text


def _zone(value: object) -> str:
    try:
        return find_zone(str(value)).key
    except DefinitionError as error:
        raise Wrong(error.message, error.hint) from None


def _cron(value: object) -> str:
    """Return the cron expression in its canonical form: words replaced, single spaces, capitals."""
    if not isinstance(value, str):
        raise Wrong("is not a cron expression: it must be text", "Write '0 2 * * *', in quotes.")
    text = value.strip().lower()
    if text.startswith("@") and text not in WORDS:
        raise Wrong(f"there is no {value!r}", did_you_mean(text, [*WORDS, "@every 90s"]))
    try:
        expression = " ".join(parse_fields(WORDS.get(text, value)))
        return Spec.parse(expression).text
    except DefinitionError as error:
        raise Wrong(error.message, error.hint) from None


def _context(value: object) -> object:
    """Return a schedule's context. Raises Wrong unless it is small JSON without the reserved names that every run has."""
    if not isinstance(value, dict):
        return value
    if reserved := [name for name in value if name in RESERVED]:
        raise Wrong(f"{reserved[0]} is set by Penstock: {RESERVED[reserved[0]]}", "Choose another name.")
    try:
        size = len(orjson.dumps(value))
    except TypeError as error:
        raise Wrong(f"is not JSON: {error}", None) from None
    if size > MOST_CONTEXT:
        raise Wrong(
            f"has {size:,} bytes, more than {MOST_CONTEXT:,}",
            "Store the data elsewhere, and give the run a link to it.",
        )
    return value


Instant = Annotated[str, BeforeValidator(_aware_instant)]


class MissedFires(Options):
    """The policy for missed fires: those that were due while no executor ran, or that were late by more than `grace`."""

    thing: ClassVar[str] = "missed"

    policy: Literal["execute", "skip", "delay"] = "execute"
    """The reaction to a missed fire. execute: run at once. skip: do not run. delay: run after `delay` seconds, so as
    not to overload a recovering system."""
    grace: Duration = 300
    """The seconds by which a fire may be late and still be in time. The default is five minutes."""
    delay: PositiveDuration = 60
    """The delay of missed fires, in seconds, under the policy `delay`."""
    catch_up: Literal["one", "all"] = "one"
    """The number of missed fires to run. one: a single fire for all of them. all: each of them, up to `at_most`."""
    at_most: Count = 100
    """The maximum number of missed fires that run. The latest ones are chosen."""
    spread: Duration = 0
    """The seconds over which the runs of missed fires are spread. Each schedule begins at a different point of that
    time."""

    @model_validator(mode="after")
    def _used(self) -> Self:
        """Refuse options that have no effect together, since each was meant to have one."""
        without = {
            "delay": None if self.policy == "delay" else "policy: delay",
            "at_most": None if self.catch_up == "all" else "catch_up: all",
        }
        if self.policy == "skip":
            without |= dict.fromkeys(("catch_up", "at_most", "spread"), "policy: execute or delay")
        for name, needed in without.items():
            if needed and getattr(self, name) != type(self).model_fields[name].default:
                raise Wrong(f"{name} does nothing without {needed}", f"Add {needed}, or leave {name} out.")
        return self


class Schedule(Declaration):
    """A schedule, such as `Schedule("nightly", action=report, cron="0 2 * * *", timezone="Europe/Paris")`.

    Exactly one of `cron`, `every`, `at` and `rrule` says when it fires. `cron` has five fields, six with seconds
    first, or is a word such as `@daily`. See `penstock.language.schedules` for the meaning of each. Raises
    DefinitionError for an expression or a zone that is wrong.
    """

    kind: ClassVar[str] = "schedule"
    thing: ClassVar[str] = "schedule"
    shorten: ClassVar[tuple[str, ...]] = ("ref", "action")

    action: Ref
    """The action or workflow to start."""
    cron: Annotated[str, BeforeValidator(_cron)] | None = None
    every: PositiveDuration | None = None
    """The seconds from one fire to the next."""
    at: Annotated[str, BeforeValidator(_instant)] | None = None
    """The one instant at which the schedule fires. Without an offset it is read in `timezone`."""
    rrule: str | None = None
    """A recurrence rule (RFC 5545), such as `DTSTART:20300107T090000 RRULE:FREQ=WEEKLY;BYDAY=MO`."""
    timezone: Annotated[str, BeforeValidator(_zone)] = "UTC"
    """The IANA name of the zone in which `cron`, `at` and `rrule` are read."""
    params: Templates = Field(default_factory=dict)
    context: Annotated[dict[str, Any], BeforeValidator(_context)] = Field(default_factory=dict)
    """The values that runs find in `current().context`, next to the names of
    `penstock.language.schedules.reserved_context`."""
    enabled: StrictBool = True
    """The initial state, when the schedule is first applied. `penstock schedule enable|disable` changes it afterwards.
    """
    starts_at: Instant | None = None
    ends_at: Instant | None = None
    jitter: Duration = 0
    """The maximum seconds by which a fire is delayed at random, so that many schedules do not start together."""
    missed: MissedFires = MissedFires()
    overlap: Overlap = "allow"
    retry: RetryPolicy | None = None
    """The retry policy, in place of the action's own. Not for workflows, whose tasks have their own policies."""
    priority: Priority = 0
    """The priority of the executions that the schedule starts."""
    expires: PositiveDuration | None = None
    """The seconds after the due instant of a fire at which its execution ends as `timeout`, if it has not begun. For a
    backfill they count from its start."""
    tenant: Tenant = "public"

    if TYPE_CHECKING:

        def __init__(
            self,
            ref: str,
            *,
            action: object,
            cron: str | None = None,
            every: object = None,
            at: datetime | str | None = None,
            rrule: str | None = None,
            timezone: str = "UTC",
            params: Mapping[str, Any] = {},
            context: Mapping[str, Any] = {},
            enabled: bool = True,
            starts_at: datetime | str | None = None,
            ends_at: datetime | str | None = None,
            jitter: object = 0,
            missed: MissedFires | Mapping[str, Any] = MissedFires(),
            overlap: Overlap = "allow",
            retry: RetryPolicy | Mapping[str, Any] | None = None,
            priority: int = 0,
            expires: object = None,
            tenant: str = "public",
            description: str = "",
        ) -> None: ...

    @classmethod
    def fold(cls, values: dict[str, Any]) -> dict[str, Any]:
        cron = values.get("cron")
        if isinstance(cron, str) and cron.startswith("@every "):
            values["every"] = positive_seconds(cron.removeprefix("@every "))
            del values["cron"]
        return super().fold(values)

    @property
    def expression(self) -> str:
        """Return the times of the schedule, in the notation that `penstock.language.schedules.Spec.parse` reads."""
        if self.every is not None:
            return f"@every {as_text(self.every)}"
        return self.cron or self.rrule or f"at {self.at}"

    @model_validator(mode="after")
    def _relations(self) -> Self:
        if sum(timing is not None for timing in (self.cron, self.every, self.at, self.rrule)) != 1:
            raise Wrong("needs exactly one time", "Give one of cron, every, at and rrule.")
        if self.starts_at and self.ends_at and self.starts_at >= self.ends_at:
            raise Wrong("ends before it starts", None)
        self._expires_later()
        try:
            Spec.parse(self.expression, self.timezone)
        except DefinitionError as error:
            raise Wrong(error.message, error.hint) from None
        return self

    def _expires_later(self) -> None:
        """Refuse an expiry by which a fire with its delay may not begin, since its execution would end without a start."""
        if self.expires is None:
            return
        expiry, missed = f"expires after {as_text(self.expires)}", self.missed
        if self.jitter >= self.expires:
            raise Wrong(
                f"{expiry}, and jitter delays fires by up to {as_text(self.jitter)}",
                "Make expires longer than jitter.",
            )
        starts = missed.grace + (missed.delay if missed.policy == "delay" else 0)
        if self.expires <= starts and (missed.policy == "delay" or missed.catch_up == "all"):
            raise Wrong(
                f"{expiry}, and missed fires start more than {as_text(starts)} after their instant",
                "Make expires longer, or write missed: {policy: skip}.",
            )


A = TypeVar("A")


def schedule(cron: str | None = None, /, *, ref: str | None = None, **options: Any) -> Callable[[A], A]:
    """Declare a schedule for an action or a workflow: put it above `@action` or `@workflow`. The options are those of
    `Schedule`. `ref` is by default that of the action. Raises DefinitionError if an option is not valid, or the
    decorator is below `@action` or `@workflow`."""
    source = of_frame(caller())

    def attach(action: A) -> A:
        schedules = getattr(action, "schedules", None)
        if not isinstance(schedules, list):
            raise source.wrong(
                "@schedule is for actions and workflows", "Put it above @action or @workflow, not below."
            )
        own = getattr(action, "ref", "")
        values = {"ref": ref or own, "action": own, **({"cron": cron} if cron else {}), **options}
        schedules.append(declare(Schedule, values, source))
        return action

    return attach
