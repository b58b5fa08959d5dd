"""A compiled version of a schedule, made once for each version. It plans fires and renders their parameters, without
I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from penstock.language.expressions import compile_template
from penstock.language.expressions.template_checks import is_template
from penstock.language.schedules import FirePlan, FirePolicy, Spec, find_zone, plan
from penstock.language.schedules.at_and_every import EPOCH
from penstock.language.schedules.fire_plan import PlannedFire, jitter_of
from penstock.language.terms.durations import as_text

TICK = timedelta(microseconds=1)
STORED_OPTIONS = ("retry", "priority", "expires")
"""The options of a schedule that are stored with each execution that it starts."""


@dataclass(frozen=True, slots=True)
class CompiledSchedule:
    """A compiled schedule. `params` renders the parameters of a fire from its context. `constant`: they are the same
    for each fire. `options` are stored with the execution of each fire."""

    ref: str
    action: str
    tenant: str
    overlap: str
    spec: Spec
    zone: ZoneInfo
    policy: FirePolicy
    params: Callable[[Mapping[str, Any]], Any]
    constant: bool
    context: Mapping[str, Any]
    options: Mapping[str, Any]

    def expires_at(self, due: datetime) -> datetime | None:
        """Return the instant at which the execution of a fire ends if it has not begun, or None."""
        seconds = self.options.get("expires")
        return due + timedelta(seconds=seconds) if seconds else None

    def first_after(self, instant: datetime) -> datetime | None:
        """Return the first fire after `instant` that the start and end dates allow, or None."""
        return _first_after(self.spec, self.policy.starts_at, self.policy.ends_at, instant)

    def latest(self, since: datetime, until: datetime, count: int) -> list[datetime]:
        """Return the last `count` fires after `since`, up to and including `until`, that the start and end dates allow."""
        policy = self.policy
        begin = max(since, policy.starts_at - TICK) if policy.starts_at else since
        return self.spec.latest(begin, min(until, policy.ends_at) if policy.ends_at else until, count)

    def plan(self, since: datetime, now: datetime) -> FirePlan:
        """Plan the fires that are due after `since` until `now`. The ordinary case, one fire and in time, is planned
        from remembered instants: many schedules fire at the same ones."""
        policy = self.policy
        due, following = _next_two(self.spec, policy.starts_at, policy.ends_at, since)
        if due is None or due > now:
            return FirePlan((), (), False, due)
        if (following is None or following > now) and (now - due).total_seconds() <= policy.grace:
            start = due + jitter_of(policy, self.ref, due) if policy.jitter else due
            return FirePlan((PlannedFire(due, start, False),), (), False, following)
        return plan(self.spec, policy, schedule_id=self.ref, since=since, now=now)

    def local(self, instant: datetime) -> str:
        """Return an instant in ISO 8601, with the offset of the schedule's zone."""
        return _local(instant, self.zone)


def compile_schedule(body: Mapping[str, Any]) -> CompiledSchedule:
    """Return the compiled schedule of a stored body. Raises DefinitionError if an expression or the time zone is not
    valid."""
    missed = dict(body.get("missed") or {})
    starts_at, ends_at = (_instant(body.get(name)) for name in ("starts_at", "ends_at"))
    params = body.get("params") or {}
    zone = str(body.get("timezone") or "UTC")
    every = body.get("every") is not None
    return CompiledSchedule(
        ref=str(body["ref"]),
        action=str(body["action"]),
        tenant=str(body.get("tenant") or "public"),
        overlap=str(body.get("overlap") or "allow"),
        spec=_spec(expression_of(body), zone, starts_at if every and starts_at else EPOCH),
        zone=find_zone(zone),
        policy=FirePolicy(
            missed=missed.pop("policy", "execute"),
            jitter=body.get("jitter") or 0,
            starts_at=starts_at,
            ends_at=ends_at,
            **missed,
        ),
        params=compile_template(params),
        constant=not is_template(params) and not any(map(is_template, params)),
        context=body.get("context") or {},
        options={name: body[name] for name in STORED_OPTIONS if body.get(name)},
    )


def expression_of(body: Mapping[str, Any]) -> str:
    """Return the times of a stored schedule, in the notation that `Spec.parse` reads."""
    if body.get("every") is not None:
        return f"@every {as_text(body['every'])}"
    return str(body.get("cron") or body.get("rrule") or f"at {body['at']}")


def same_times(schedule: CompiledSchedule, other: CompiledSchedule) -> bool:
    """Return whether both schedules are due at the same instants."""
    return (schedule.spec, schedule.policy.starts_at, schedule.policy.ends_at) == (
        other.spec,
        other.policy.starts_at,
        other.policy.ends_at,
    )


@lru_cache(maxsize=10_000)
def _spec(expression: str, zone: str, anchor: datetime) -> Spec:
    return Spec.parse(expression, zone, anchor=anchor)


def _first_after(
    spec: Spec, starts_at: datetime | None, ends_at: datetime | None, instant: datetime
) -> datetime | None:
    due = spec.after(max(instant, starts_at - TICK) if starts_at else instant)
    return None if due and ends_at and due > ends_at else due


@lru_cache(maxsize=20_000)
def _next_two(
    spec: Spec, starts_at: datetime | None, ends_at: datetime | None, instant: datetime
) -> tuple[datetime | None, datetime | None]:
    due = _first_after(spec, starts_at, ends_at, instant)
    return due, _first_after(spec, starts_at, ends_at, due) if due else None


@lru_cache(maxsize=20_000)
def _local(instant: datetime, zone: ZoneInfo) -> str:
    return instant.astimezone(zone).isoformat()


def _instant(text: Any) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
