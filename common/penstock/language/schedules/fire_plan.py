"""The plan for due fires, in time or missed: which fires to create, when each runs, and when to plan again.

Pure: the caller passes the instant of the last fire and the current instant (of the database's clock). The caller
writes the plan in the transaction that creates the executions.
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
"""The maximum number of fires of one plan, so that its transaction stays small. The next plan has the rest."""
MAX_SKIPPED = 1_000
"""The maximum number of skipped fires that a plan names. If there are more, it only says so."""
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class FirePolicy:
    """The policy for late fires. All durations are in seconds.

    A fire that is at most `grace` late is in time. Of the **missed** fires: `execute` runs them at once, `delay` runs
    them `delay` later, `skip` drops them. With `catch_up` `one` the latest stands for all of them, with `all` the
    latest `at_most`. They start evenly over `spread`. The start of the first is fixed by the schedule's id, so that
    many schedules do not start together. Each fire starts up to `jitter` later, by an amount that the ids of schedule
    and fire fix. Nothing fires before `starts_at` or after `ends_at`. The defaults are those of the field: five
    minutes' grace.
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
    """A planned fire, for which an execution is created. The fire was due at `due` and starts at `run_at`, or at once
    if that is past."""

    due: datetime
    run_at: datetime
    missed: bool


@dataclass(frozen=True, slots=True)
class FirePlan:
    """A plan of fires, in the order of `due`. `skipped` are due instants without an execution, at most the latest
    MAX_SKIPPED. `more_skipped` says whether there were others.

    `next_due` is the instant to plan again, or None if the schedule is over. That instant may be past, if there were
    more than MAX_FIRES.
    """

    fires: tuple[PlannedFire, ...]
    skipped: tuple[datetime, ...]
    more_skipped: bool
    next_due: datetime | None


def plan(spec: Spec, policy: FirePolicy, *, schedule_id: object, since: datetime, now: datetime) -> FirePlan:
    """Plan the fires that are due after `since` and until `now`. `since` is the last processed instant, or the
    schedule's creation."""
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
    """Return the start of each missed fire, evenly over `spread` from now, or from `delay` later."""
    first = now.astimezone(UTC) + timedelta(seconds=policy.delay if policy.missed == "delay" else 0)
    apart = timedelta(seconds=policy.spread) / max(1, len(made_up))
    own = _share(schedule_id) if policy.spread else 0.0
    return [(due, first + (n + own) * apart, True) for n, due in enumerate(made_up)]


def jitter_of(policy: FirePolicy, schedule_id: object, due: datetime) -> timedelta:
    """Return the random delay of a fire. The delay is the same on every replica and in every plan of this fire."""
    if not policy.jitter:
        return timedelta()
    return timedelta(seconds=policy.jitter * _share(f"{schedule_id} {due.astimezone(UTC).isoformat()}"))


def _share(of: object) -> float:
    """Return a pseudo-random number from 0 to 1 that depends only on `of`."""
    return int.from_bytes(blake2b(str(of).encode(), digest_size=8).digest()) / 2**64
