"""Schedules: start an action at the instants of a cron expression, every so often, or once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from penstock.definitions.cron import checked_cron
from penstock.definitions.declared import Declared, declare
from penstock.definitions.refs import Ref
from penstock.definitions.rule import Tenant
from penstock.definitions.templates import Templates
from penstock.durations import Duration, PositiveDuration, positive_seconds
from penstock.options import Count, Options, Wrong, did_you_mean
from penstock.policies import RetryPolicy
from penstock.sources import caller, of_frame

Overlap = Literal["allow", "skip", "queue", "replace"]
"""What happens when a fire is due while the one before it still runs."""


def _instant(given: object) -> object:
    """An aware datetime, or ISO text of one, as ISO text in UTC."""
    hint = "Write '2030-01-31T09:00:00+01:00', or an aware datetime."
    try:
        when = datetime.fromisoformat(given) if isinstance(given, str) else given
    except ValueError as error:
        raise Wrong(f"is not an instant: {error}", hint) from None
    if not isinstance(when, datetime):
        raise Wrong("is not an instant", hint)
    if when.tzinfo is None:
        raise Wrong("is an instant without a zone", hint)
    return when.astimezone(UTC).isoformat()


def _zone(given: object) -> object:
    if isinstance(given, str):
        try:
            return ZoneInfo(given).key
        except (KeyError, ValueError, OSError):
            pass
    raise Wrong(f"is not a time zone: {given!r}", did_you_mean(str(given), available_timezones()))


Instant = Annotated[str, BeforeValidator(_instant)]


class MissedFires(Options):
    """What becomes of fires that were due while nothing ran, or the schedule was late by more than `grace`."""

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
    """Seconds over which the fires of a backlog are spread."""


class Schedule(Declared):
    """`Schedule("nightly", action=report, cron="0 2 * * *", timezone="Europe/Paris")`. Exactly one of `cron` (five
    fields, six with seconds first, or words such as `@daily`), `every` and `at` says when.

    Raises DefinitionError for an expression or a zone that is wrong."""

    kind: ClassVar[str] = "schedule"
    shorten: ClassVar[tuple[str, ...]] = ("ref", "action")

    action: Ref
    """An action or a workflow."""
    cron: Annotated[str, BeforeValidator(checked_cron)] | None = None
    every: PositiveDuration | None = None
    """Seconds from one fire to the next."""
    at: Instant | None = None
    """The one instant at which it fires."""
    timezone: Annotated[str, BeforeValidator(_zone)] = "UTC"
    """IANA name of the zone in which `cron` is read."""
    params: Templates = Field(default_factory=dict)
    context: dict[str, Any] = Field(default_factory=dict)
    """What its runs find in their context, next to scheduled_time, schedule, timezone and the like."""
    enabled: StrictBool = True
    starts_at: Instant | None = None
    ends_at: Instant | None = None
    jitter: Duration = 0
    """Seconds by which a fire may start later, at random: so that a thousand of them do not start together."""
    missed: MissedFires = MissedFires()
    overlap: Overlap = "allow"
    retry: RetryPolicy | None = None
    """Instead of the action's own."""
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
    def fold(cls, given: dict[str, Any]) -> dict[str, Any]:
        cron = given.get("cron")
        if isinstance(cron, str) and cron.startswith("@every "):
            given["every"] = positive_seconds(cron.removeprefix("@every "))
            del given["cron"]
        return super().fold(given)

    @model_validator(mode="after")
    def _relations(self) -> Self:
        if sum(one is not None for one in (self.cron, self.every, self.at)) != 1:
            raise Wrong("must say when exactly once", "Give one of cron, every and at.")
        if self.starts_at and self.ends_at and self.starts_at >= self.ends_at:
            raise Wrong("ends before it starts", None)
        return self


A = TypeVar("A")


def schedule(cron: str | None = None, /, *, ref: str | None = None, **options: Any) -> Callable[[A], A]:
    """Declares a schedule for an action: put it above `@action`. The options are those of `Schedule`; `ref` is the
    action's own where it is not given. Raises DefinitionError."""
    source = of_frame(caller())

    def attach(action: A) -> A:
        schedules = getattr(action, "schedules", None)
        if not isinstance(schedules, list):
            raise source.wrong("@schedule is for actions", "Put it above @action, not below.")
        own = getattr(action, "ref", "")
        given = {"ref": ref or own, "action": own, **({"cron": cron} if cron else {}), **options}
        schedules.append(declare(Schedule, given, source))
        return action

    return attach
