"""Schedules: start an action at the instants of a cron expression, every so often, or once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

import orjson
from pydantic import BeforeValidator, Field, StrictBool, model_validator

from penstock.errors import DefinitionError
from penstock.language.definitions.declaration import Declaration, declare
from penstock.language.definitions.qualified_name import Ref
from penstock.language.definitions.rule import Tenant
from penstock.language.expressions.template_checks import Templates
from penstock.language.policies.policies import RetryPolicy
from penstock.language.schedules import Spec, find_zone
from penstock.language.schedules.cron import WORDS
from penstock.language.schedules.cron_fields import parse_fields
from penstock.language.schedules.reserved_context import RESERVED
from penstock.language.terms.durations import Duration, PositiveDuration, as_text, positive_seconds
from penstock.language.terms.options import Count, Options, Wrong, did_you_mean
from penstock.language.terms.sources import caller, of_frame

MOST_CONTEXT = 32 * 1024
"""Bytes of a schedule's context: programs get it in one environment variable."""
Overlap = Literal["allow", "skip", "queue", "replace"]
"""What happens when a fire is due while the one before it still runs."""


def _instant(value: object) -> str:
    """A datetime, or ISO text of one, as ISO text: in UTC if it has a zone."""
    hint = "Write '2030-01-31T09:00:00+01:00', or a datetime."
    try:
        when = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError as error:
        raise Wrong(f"is not an instant: {error}", hint) from None
    if not isinstance(when, datetime):
        raise Wrong("is not an instant", hint)
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
    """The expression, written the one way: words replaced, single spaces, capitals."""
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
    """Check the context of a schedule: JSON, small, and without the reserved names that every run has."""
    if not isinstance(value, dict):
        return value
    if reserved := [name for name in value if name in RESERVED]:
        raise Wrong(f"{reserved[0]} is for Penstock to say: {RESERVED[reserved[0]]}", "Choose another name.")
    try:
        size = len(orjson.dumps(value))
    except TypeError as error:
        raise Wrong(f"is not JSON: {error}", None) from None
    if size > MOST_CONTEXT:
        raise Wrong(f"has {size:,} bytes, more than {MOST_CONTEXT:,}", "Give the run a link to it.")
    return value


Instant = Annotated[str, BeforeValidator(_aware_instant)]


class MissedFires(Options):
    """The policy for missed fires, which were due while nothing ran, or while the schedule was late by more than
    `grace`."""

    thing: ClassVar[str] = "missed"

    policy: Literal["execute", "skip", "delay"] = "execute"
    """execute: at once; skip: not at all; delay: after `delay` seconds, so as not to overload what comes back."""
    grace: Duration = 300
    """Seconds that a fire may be late and still counts as in time. The seed's default: five minutes."""
    delay: PositiveDuration = 60
    """Seconds, for the policy `delay`."""
    catch_up: Literal["one", "all"] = "one"
    """one: a single fire stands for all that were missed; all: each of them, up to `at_most`."""
    at_most: Count = 100
    """Missed fires that are caught up with; the latest ones."""
    spread: Duration = 0
    """Seconds over which the runs of missed fires are spread; those of several schedules too, as each begins at a
    point of its own."""

    @model_validator(mode="after")
    def _used(self) -> Self:
        """Refuse options without effect: each was meant to have one."""
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
    """`Schedule("nightly", action=report, cron="0 2 * * *", timezone="Europe/Paris")`. Exactly one of `cron` (five
    fields, six with seconds first, or words such as `@daily`), `every`, `at` and `rrule` says when; see
    `penstock.language.schedules` for what each means.

    Raises DefinitionError for an expression or a zone that is wrong."""

    kind: ClassVar[str] = "schedule"
    thing: ClassVar[str] = "schedule"
    shorten: ClassVar[tuple[str, ...]] = ("ref", "action")

    action: Ref
    """An action or a workflow."""
    cron: Annotated[str, BeforeValidator(_cron)] | None = None
    every: PositiveDuration | None = None
    """Seconds from one fire to the next."""
    at: Annotated[str, BeforeValidator(_instant)] | None = None
    """The one instant at which it fires; without an offset it is read in `timezone`."""
    rrule: str | None = None
    """`DTSTART:20300107T090000 RRULE:FREQ=WEEKLY;BYDAY=MO` (RFC 5545)."""
    timezone: Annotated[str, BeforeValidator(_zone)] = "UTC"
    """IANA name of the zone in which all this is read."""
    params: Templates = Field(default_factory=dict)
    context: Annotated[dict[str, Any], BeforeValidator(_context)] = Field(default_factory=dict)
    """What its runs find in `current().context`, next to the names of `penstock.language.schedules.reserved_context`."""
    enabled: StrictBool = True
    """What it is when it is first applied; `penstock schedule enable|disable` changes it afterwards."""
    starts_at: Instant | None = None
    ends_at: Instant | None = None
    jitter: Duration = 0
    """Seconds by which a fire may start later, at random: so that a thousand of them do not start together."""
    missed: MissedFires = MissedFires()
    overlap: Overlap = "allow"
    retry: RetryPolicy | None = None
    """Instead of the action's own. Not for workflows, whose tasks have policies of their own."""
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
        """Return the times of the schedule, in the form that `penstock.language.schedules.Spec.parse` reads."""
        if self.every is not None:
            return f"@every {as_text(self.every)}"
        return self.cron or self.rrule or f"at {self.at}"

    @model_validator(mode="after")
    def _relations(self) -> Self:
        if sum(timing is not None for timing in (self.cron, self.every, self.at, self.rrule)) != 1:
            raise Wrong("must say when exactly once", "Give one of cron, every, at and rrule.")
        if self.starts_at and self.ends_at and self.starts_at >= self.ends_at:
            raise Wrong("ends before it starts", None)
        try:
            Spec.parse(self.expression, self.timezone)
        except DefinitionError as error:
            raise Wrong(error.message, error.hint) from None
        return self


A = TypeVar("A")


def schedule(cron: str | None = None, /, *, ref: str | None = None, **options: Any) -> Callable[[A], A]:
    """Declares a schedule for an action or a workflow: put it above `@action` or `@workflow`. The options are those of
    `Schedule`; `ref` is that of the action where it is not given. Raises DefinitionError."""
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
