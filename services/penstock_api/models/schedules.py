"""The models of schedules and their fires."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from penstock.store.schedules.reading import ScheduleSummary
from penstock_api.models.model import Changed, Duration, Given, Instant, Tenant

Refs = Annotated[list[str], Field(min_length=1, max_length=1000)]


class Missed(Given):
    """The policy for missed fires."""

    policy: Literal["execute", "skip", "delay"] | None = None
    grace: Duration | None = None
    delay: Duration | None = None
    catch_up: Literal["one", "all"] | None = None
    at_most: int | None = Field(default=None, ge=1, le=100_000)
    spread: Duration | None = None


class ChangeSchedule(Given):
    """A change of a schedule. An omitted option stays as it is. Durations are seconds, or texts such as "5m"."""

    action: str | None = None
    cron: str | None = None
    every: Duration | None = None
    at: str | None = Field(
        default=None, description="The instant of the only fire: 2030-01-31T09:00, in the schedule's zone."
    )
    rrule: str | None = None
    timezone: str | None = None
    params: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    overlap: Literal["allow", "skip", "queue", "replace"] | None = None
    missed: Missed | None = None
    jitter: Duration | None = None
    starts_at: str | None = None
    ends_at: str | None = None
    retry: dict[str, Any] | None = None
    priority: int | None = Field(default=None, description="The priority of its executions.")
    expires: Duration | None = Field(
        default=None,
        description="The time from the due instant after which an execution that has not begun ends as timeout.",
    )
    tenant: Tenant | None = None
    description: str | None = None


class CreateSchedule(ChangeSchedule):
    """A new schedule, for an action or workflow that is registered."""

    ref: str
    action: str
    enabled: bool | None = None


class PutSchedule(ChangeSchedule):
    """The options of a schedule. An omitted option has its default. Durations are seconds, or texts such as "5m"."""

    action: str = Field(description="The action or workflow to start.")
    enabled: bool | None = Field(default=None, description="The initial state of a new schedule.")


class ScheduleChanged(Changed):
    schedule: ScheduleSummary


class PauseSchedule(Given):
    seconds: float = Field(gt=0, le=3e8)


class PauseSchedules(PauseSchedule):
    refs: Refs


class Backfill(Given):
    first: Instant
    last: Instant
    dry_run: bool = False
