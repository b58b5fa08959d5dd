"""The models of schedules and their fires."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from penstock.store.schedules.reading import ScheduleSummary
from penstock_api.models.model import Changed, Duration, Given, Instant, Tenant

Refs = Annotated[list[str], Field(min_length=1, max_length=1000)]


class MissedFires(Given):
    """The policy for missed fires."""

    policy: Literal["execute", "skip", "delay"] | None = Field(
        default=None,
        description="`execute` (default): a missed fire starts at once. `delay`: it starts after `delay`. `skip`: it "
        "does not start. null: as if omitted.",
    )
    grace: Duration | None = Field(
        default=None,
        description='The time by which a fire may be late without being missed: seconds, or a text such as "5m". '
        "Default: 5 minutes. null: as if omitted.",
    )
    delay: Duration | None = Field(
        default=None,
        description="With the policy `delay`: the time after which a missed fire starts, in seconds or as a text "
        'such as "5m". Default: 60 seconds. null: as if omitted.',
    )
    catch_up: Literal["one", "all"] | None = Field(
        default=None,
        description="`one` (default): the latest missed fire starts, and stands for all. `all`: each of them starts, "
        "up to `at_most`. null: as if omitted.",
    )
    at_most: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description="With `catch_up` `all`: the maximum number of missed fires that start. The latest fires count. Default: "
        "100. null: as if omitted.",
    )
    spread: Duration | None = Field(
        default=None,
        description="The time over which the starts of missed fires are spread evenly: seconds, or a text such as "
        '"5m". Default: 0, all at once. null: as if omitted.',
    )


class ChangeSchedule(Given):
    """A change of a schedule. An omitted option stays as it is. Durations are seconds, or texts such as "5m"."""

    action: str | None = Field(
        default=None, description="The action or workflow to start. null: as if omitted."
    )
    cron: str | None = Field(
        default=None,
        description="The times as a cron expression, such as `0 9 * * MON-FRI`, or a word such as `@daily`. Exactly "
        "one of `cron`, `every`, `at` and `rrule` is set. null: as if omitted.",
    )
    every: Duration | None = Field(
        default=None,
        description='The time from one fire to the next: seconds, or a text such as "90s". null: as if omitted.',
    )
    at: str | None = Field(
        default=None,
        description="The instant of the only fire: 2030-01-31T09:00, in the schedule's zone. null: as if omitted.",
    )
    rrule: str | None = Field(
        default=None,
        description="The times as a recurrence rule (RFC 5545): `DTSTART:20300107T090000 "
        "RRULE:FREQ=WEEKLY;BYDAY=MO`, with a space or a line break between the two parts. null: as if omitted.",
    )
    timezone: str | None = Field(
        default=None,
        description="The IANA name of the zone in which `cron`, `at` and `rrule` are read, such as Europe/Paris. "
        "Default: UTC. null: as if omitted.",
    )
    params: dict[str, Any] | None = Field(
        default=None,
        description="The parameters of its executions. Texts may hold templates over the context: `{{ scheduled_time "
        "}}`. null: as if omitted.",
    )
    context: dict[str, Any] | None = Field(
        default=None,
        description="More values for templates and executions, in addition to `scheduled_time` and the other values of a "
        "start. null: as if omitted.",
    )
    overlap: Literal["allow", "skip", "queue", "replace"] | None = Field(
        default=None,
        description="The treatment of a fire while an execution of an earlier fire has not ended. `allow` (default): "
        "it starts beside it. `skip`: it is skipped. `queue`: it waits. `replace`: it cancels that "
        "execution, and starts when it has ended. null: as if omitted.",
    )
    missed: MissedFires | None = Field(
        default=None,
        description="The policy for fires that are late by more than the grace, such as after an outage. null: as "
        "if omitted.",
    )
    jitter: Duration | None = Field(
        default=None,
        description="The longest time by which a fire is delayed, so that many schedules do not start together: "
        'seconds, or a text such as "30s". Default: 0. null: as if omitted.',
    )
    starts_at: str | None = Field(
        default=None,
        description="The instant, with an offset, before which it does not fire. Default: no bound. null: as if "
        "omitted.",
    )
    ends_at: str | None = Field(
        default=None,
        description="The instant, with an offset, after which it does not fire. Default: no bound. null: as if "
        "omitted.",
    )
    retry: dict[str, Any] | None = Field(
        default=None,
        description='The retry policy of its executions, instead of that of the action: `{"max_attempts": 5}`. Not '
        "for workflows. null: as if omitted.",
    )
    priority: int | None = Field(
        default=None, description="The priority of its executions. null: as if omitted."
    )
    expires: Duration | None = Field(
        default=None,
        description="The time from the due instant after which an execution that has not begun ends as timeout. "
        "null: as if omitted.",
    )
    tenant: Tenant | None = Field(
        default=None, description="The tenant of its executions. Default: public. null: as if omitted."
    )
    description: str | None = Field(
        default=None, description="A text for people. It has no effect. null: as if omitted."
    )


class CreateSchedule(ChangeSchedule):
    """A new schedule, for an action or workflow that is registered."""

    ref: str = Field(
        description="The name of the schedule, such as `shop.nightly`: the pack and the name within it."
    )
    action: str = Field(description="The action or workflow to start.")
    enabled: bool | None = Field(
        default=None,
        description="True (default): it fires. False: it does not fire until it is enabled. null: as if omitted.",
    )


class PutSchedule(ChangeSchedule):
    """The options of a schedule. An omitted option has its default. Durations are seconds, or texts such as "5m"."""

    action: str = Field(description="The action or workflow to start.")
    enabled: bool | None = Field(
        default=None,
        description="The initial state of a new schedule. True (default): it fires. null: as if omitted.",
    )


class ScheduleChanged(Changed):
    schedule: ScheduleSummary = Field(description="The schedule as it is now.")


class PauseSchedule(Given):
    seconds: float = Field(
        gt=0,
        le=3e8,
        description="The seconds for which it does not fire. Fires in this time are left out, and do not "
        "count as missed.",
    )


class PauseSchedules(PauseSchedule):
    refs: Refs = Field(
        description="The names of the schedules. If one of them does not exist, none is paused."
    )


class Backfill(Given):
    first: Instant = Field(
        description="The beginning of the range. A fire that was due at this instant is included."
    )
    last: Instant = Field(
        description="The end of the range. A fire that was due at this instant is included. Future fires are left "
        "to the schedule."
    )
    dry_run: bool = Field(default=False, description="True: start nothing, and only list the fires.")
