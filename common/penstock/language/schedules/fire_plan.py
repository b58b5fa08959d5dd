"""The plan for due fires, in time or missed: which to create, when each runs, and which is next.

Pure: the caller passes the instant of the last fire and of now (the database's clock). It writes the plan in the
transaction that creates the executions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Literal

from penstock.errors import DefinitionError
from penstock.language.schedules.spec import Spec

MAX_FIRES = 1_000
"""Fires of one plan, so that its transaction stays small. What is left over comes with the next plan."""
MAX_SKIPPED = 1_000
"""Skipped fires that a plan names; of more it says that there are more."""
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class FirePolicy:
    """The policy for late fires. Lengths of time are in seconds.

    A fire that is at most `grace` late is in time. Of those that were **missed**:
    `execute` runs them at once, `delay` runs them `delay` later, `skip` drops them. With `catch_up` `one` the
    latest stands for all of them, with `all` the latest `at_most`. They start evenly over `spread`. The first
    starts at a point that is always the same for the same schedule, so that many schedules do not start together.
    `jitter` starts each fire up to so much later, always as much for the same schedule and fire.
    Nothing fires before `starts_at` or after `ends_at`. The defaults are those of the field: five minutes' grace.
    """

    missed: Literal["execute", "skip", "delay"] = "execute"
    grace: float = 300
    delay: float = 60
    catch_up: Literal["one", "all"] = "one"
    at_most: int = 100
    spread: float = 0
    jitter: float = 0
    starts_at: datetime | None = None
    ends_at: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("grace", "delay", "spread", "jitter"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise DefinitionError(f"A schedule's {name} cannot be {getattr(self, name)!r} seconds.")
        if self.at_most < 1:
            raise DefinitionError(
                f"at_most cannot be {self.at_most}.", hint="To drop missed fires, use skip."
            )
        if self.starts_at and self.ends_at and self.starts_at > self.ends_at:
            raise DefinitionError("A schedule cannot end before it starts.")


@dataclass(frozen=True, slots=True)
class PlannedFire:
    """A fire to create an execution for: it was due at `due` and starts at `run_at` (or at once, if that is past)."""

    due: datetime
    run_at: datetime
    missed: bool


@dataclass(frozen=True, slots=True)
class FirePlan:
    """`fires` in the order of `due`. `skipped` are due instants that get no execution, the latest MAX_SKIPPED of
    them; `more_skipped` if there were others. `next_due` is when to plan again (it may be past, if there were
    more than MAX_FIRES), None if the schedule is over."""

    fires: tuple[PlannedFire, ...]
    skipped: tuple[datetime, ...]
    more_skipped: bool
    next_due: datetime | None


def plan(spec: Spec, policy: FirePolicy, *, schedule_id: object, since: datetime, now: datetime) -> FirePlan:
    """Plan the fires that are due after `since`, the last processed instant (or the creation of the schedule), until
    `now`."""
    begin = max(since, policy.starts_at - _TICK) if policy.starts_at else since
    end = min(now, policy.ends_at) if policy.ends_at else now
    too_late = min(end, now - timedelta(seconds=policy.grace) - _TICK)
    limit = 0 if policy.missed == "skip" else 1 if policy.catch_up == "one" else policy.at_most

    missed = spec.latest(begin, too_late, limit + MAX_SKIPPED + 1)
    made_up = missed[len(missed) - min(limit, len(missed)) :]
    skipped = missed[: len(missed) - len(made_up)]
    in_time = spec.between(max(begin, too_late), end, MAX_FIRES + 1)

    starts = [*_backlog(policy, schedule_id, made_up, now), *((due, due, False) for due in in_time)]
    fires = [
        PlannedFire(due, at + jitter_of(policy, schedule_id, due), late)
        for due, at, late in starts[:MAX_FIRES]
    ]
    if len(starts) > MAX_FIRES:
        next_due: datetime | None = starts[MAX_FIRES][0]
    else:
        next_due = spec.after(max(begin, end))
    if next_due and policy.ends_at and next_due > policy.ends_at:
        next_due = None
    return FirePlan(tuple(fires), tuple(skipped[-MAX_SKIPPED:]), len(skipped) > MAX_SKIPPED, next_due)


def _backlog(
    policy: FirePolicy, schedule_id: object, made_up: Sequence[datetime], now: datetime
) -> list[tuple[datetime, datetime, bool]]:
    """Return the start of each missed fire: from now, or from `delay` after it, evenly over `spread`."""
    first = now.astimezone(UTC) + timedelta(seconds=policy.delay if policy.missed == "delay" else 0)
    apart = timedelta(seconds=policy.spread) / max(1, len(made_up))
    own = _share(schedule_id) if policy.spread else 0.0
    return [(due, first + (n + own) * apart, True) for n, due in enumerate(made_up)]


def jitter_of(policy: FirePolicy, schedule_id: object, due: datetime) -> timedelta:
    """Return the jitter of a fire, which is the same on every replica and in every plan of this fire."""
    if not policy.jitter:
        return timedelta()
    return timedelta(seconds=policy.jitter * _share(f"{schedule_id} {due.astimezone(UTC).isoformat()}"))


def _share(of: object) -> float:
    """Return a pseudo-random share from 0 to 1, which is always the same for the same input."""
    return int.from_bytes(blake2b(str(of).encode(), digest_size=8).digest()) / 2**64
