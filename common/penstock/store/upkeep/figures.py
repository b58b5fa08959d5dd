"""The figures of the whole installation. One replica measures them at intervals and writes one row, which all
replicas read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import orjson

from penstock.language.moves import FINAL
from penstock.store.outbox.dead_letters import FOLDED
from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as

BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0, 86400.0)
"""Bounds of the histogram: seconds from an execution's creation to its end."""
COMMITTED = timedelta(seconds=5)
"""The longest time by which the commit of a move may follow its instant, for the move to be counted."""
LABEL_VALUES = 100
"""The values of a label that are counted separately. Further values are added up as `other`."""
OTHER = "other"
REASONS = 20
"""Reasons of dead letters that are counted separately: those with the most letters."""


@dataclass(frozen=True, slots=True)
class Work:
    """Open executions of a `kind` (action, workflow, wait) in a `status`, by the `queue` of their route. `delayed`:
    they wait for an instant. The `oldest` has waited for so many seconds. Of executions that stand in line, only
    those without a live worker are included."""

    kind: str
    queue: str | None
    status: str
    delayed: bool
    count: int
    oldest: float


@dataclass(frozen=True, slots=True)
class Line:
    """Executions that wait for a `gate`: `limit`, `worker` (no live worker runs their action), `regroup`."""

    gate: str
    count: int
    oldest: float


@dataclass(frozen=True, slots=True)
class Letters:
    queue: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class Processes:
    kind: str
    state: str
    count: int


@dataclass(frozen=True, slots=True)
class Crew:
    """The live workers of a route."""

    route: str
    workers: int
    slots: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The executions of an action or workflow that ended with a status, since the installation was made."""

    action: str
    status: str
    count: int


@dataclass(slots=True)
class Took:
    """The histogram of durations, from creation to end, of executions without a parent: the count of each bucket of
    `BUCKETS` and of longer ones, and the sum in seconds."""

    counts: list[int]
    seconds: float


@dataclass(slots=True)
class Labelled:
    """The executions without a parent that had a label and ended: their number by status, and their durations. A label keeps
    the figures of its first values, since a counter must not fall. The `value` null has those of all further values."""

    key: str
    value: str | None
    counts: dict[str, int] = field(default_factory=dict)
    durations: Took = field(default_factory=lambda: Took([0] * (len(BUCKETS) + 1), 0.0))


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures. Totals since the installation was made continue whichever replica measures."""

    work: Sequence[Work] = ()
    lines: Sequence[Line] = ()
    letters: Sequence[Letters] = ()
    processes: Sequence[Processes] = ()
    crews: Sequence[Crew] = ()
    outbox_messages: int = 0
    outbox_oldest: float = 0.0
    unmatched_events: int = 0
    untold_ends: int = 0
    held: int = 0
    breakers_open: int = 0
    breakers_releasing: int = 0
    ended: Sequence[Ended] = ()
    took: dict[str, Took] = field(default_factory=dict)
    labelled: Sequence[Labelled] = ()


WORK = """
select n.kind, n.queue, e.status, e.status = 'requested' and coalesce(e.not_before > clock_timestamp(), false) as delayed,
    count(*) as count,
    coalesce(extract(epoch from clock_timestamp() - min(coalesce(e.since, e.ready_at))), 0)::float8 as oldest
from live l join execution e on e.id = l.execution_id join namespace n on n.id = e.namespace_id
group by 1, 2, 3, 4 order by 1, 2, 3, 4
"""
LINES = """
select l.gate_kind as gate, sum(w.n)::bigint as count,
    extract(epoch from clock_timestamp() - min(l.ready_at))::float8 as oldest
from lane l cross join lateral (select count(*) as n from waiter where waiter.lane = l.id) w
group by 1 order by 1
"""
AWAY = """
select 'action' as kind, n.queue, 'queued' as status, false as delayed, sum(w.n)::bigint as count,
    extract(epoch from clock_timestamp() - min(l.ready_at))::float8 as oldest
from lane l join namespace n on n.id = l.namespace_id
    cross join lateral (select count(*) as n from waiter where waiter.lane = l.id) w
where l.gate_kind = 'worker' group by n.queue order by n.queue
"""
LETTERS = f"select queue, {FOLDED} as reason, count(*) as count from dead_letter group by 1, 2 order by 3 desc, 1, 2 limit $1"
PROCESSES = """
select kind, state, count(*) as count from process
where state <> 'dead' and beat_at > clock_timestamp() - make_interval(secs => $1) group by 1, 2 order by 1, 2
"""
CREWS = """
select route, count(*) as workers, coalesce(sum(concurrency), 0)::bigint as slots
from process cross join unnest(routes) route
where kind = 'worker' and state = 'active' and beat_at > clock_timestamp() - make_interval(secs => $1)
group by 1 order by 1
"""
STAGED = """
select (select count(*) from outbox) as outbox_messages,
    coalesce(extract(epoch from clock_timestamp() - (select min(created_at) from outbox)), 0)::float8 as outbox_oldest,
    (select count(*) from unmatched) as unmatched_events, (select count(*) from untold) as untold_ends,
    (select count(*) from held_execution) as held,
    (select count(*) from breaker where releasing_since is null) as breakers_open,
    (select count(*) from breaker where releasing_since is not null) as breakers_releasing
"""
ENDS = """
select n.action, h.new as status, e.parent is null as first, count(*) as count,
    width_bucket(extract(epoch from h.at - e.created_at)::float8, $4::float8[]) as bucket,
    sum(extract(epoch from h.at - e.created_at))::float8 as seconds
from history h join execution e on e.id = h.execution_id join namespace n on n.id = e.namespace_id
where h.at >= $1 and h.at < $2 and h.new = any($3)
group by 1, 2, 3, 5
"""
# The most frequent values come first, so that they get figures of their own.
LABELLED_ENDS = """
select l.key, l.value, h.new as status, count(*) as count,
    width_bucket(extract(epoch from h.at - e.created_at)::float8, $4::float8[]) as bucket,
    sum(extract(epoch from h.at - e.created_at))::float8 as seconds
from history h join execution e on e.id = h.execution_id join label l on l.execution_id = e.id
where h.at >= $1 and h.at < $2 and h.new = any($3) and e.parent is null and l.key = any($5)
group by 1, 2, 3, 5 order by sum(count(*)) over (partition by l.key, l.value) desc, 1, 2
"""


async def measure(
    tx: Transaction,
    stale: float,
    since: datetime,
    until: datetime,
    previous: Figures,
    label_keys: Sequence[str] = (),
) -> Figures:
    """Measure all figures. Ends from `since` to before `until` are added to the `previous` totals, and counted by the labels
    `label_keys`, too. A process without a heartbeat within `stale` seconds does not count."""
    [staged] = await tx.fetch(STAGED)
    now = Figures(
        work=rows_as(Work, [*await tx.fetch(WORK), *await tx.fetch(AWAY)]),
        lines=rows_as(Line, await tx.fetch(LINES)),
        letters=rows_as(Letters, await tx.fetch(LETTERS, REASONS)),
        processes=rows_as(Processes, await tx.fetch(PROCESSES, stale)),
        crews=rows_as(Crew, await tx.fetch(CREWS, stale)),
        **staged,
    )
    ends = await tx.fetch(ENDS, since, until, sorted(FINAL), BUCKETS)
    labelled = list(previous.labelled)
    if label_keys:
        labelled_ends = await tx.fetch(LABELLED_ENDS, since, until, sorted(FINAL), BUCKETS, list(label_keys))
        labelled = _labelled(previous.labelled, labelled_ends)
    return replace(
        now, ended=_counted(previous.ended, ends), took=_timed(previous.took, ends), labelled=labelled
    )


def _counted(previous: Sequence[Ended], ends: Sequence[Any]) -> list[Ended]:
    counts = {(row.action, row.status): row.count for row in previous}
    for end in ends:
        of = end["action"], end["status"]
        counts[of] = counts.get(of, 0) + end["count"]
    return [Ended(*of, count) for of, count in sorted(counts.items())]


def _timed(previous: dict[str, Took], ends: Sequence[Any]) -> dict[str, Took]:
    times = {
        action: Took(list(histogram.counts), histogram.seconds) for action, histogram in previous.items()
    }
    for end in ends:
        if end["first"]:
            histogram = times.setdefault(end["action"], Took([0] * (len(BUCKETS) + 1), 0.0))
            histogram.counts[end["bucket"]] += end["count"]
            histogram.seconds += end["seconds"]
    return times


def _labelled(previous: Sequence[Labelled], ends: Sequence[Any]) -> list[Labelled]:
    rows = {(row.key, row.value): row for row in previous}
    named = Counter(row.key for row in previous if row.value is not None)
    for end in ends:
        key, value = end["key"], end["value"]
        if (key, value) not in rows:
            if named[key] < LABEL_VALUES:
                named[key] += 1
            else:
                value = None
        row = rows.setdefault((key, value), Labelled(key, value))
        row.counts[end["status"]] = row.counts.get(end["status"], 0) + end["count"]
        row.durations.counts[end["bucket"]] += end["count"]
        row.durations.seconds += end["seconds"]
    return list(rows.values())


DUE = """
select measured_at, clock_timestamp() - $1::interval as until, body::text as body
from figures where due_at <= clock_timestamp() for update skip locked
"""


@dataclass(frozen=True, slots=True)
class Due:
    """A measurement that this transaction has to make. Ends from `since` to before `until` are not in `before` yet."""

    since: datetime
    until: datetime
    before: Figures


async def due(tx: Transaction) -> Due | None:
    """Lock the measurement, if it is due and no other replica makes it; otherwise return None."""
    rows = await tx.fetch(DUE, COMMITTED)
    return Due(rows[0]["measured_at"], rows[0]["until"], _read(rows[0]["body"])) if rows else None


KEEP = """
update figures
set measured_at = greatest(measured_at, $1), due_at = clock_timestamp() + make_interval(secs => $2), body = $3::jsonb
"""


async def keep(tx: Transaction, measured: Figures, until: datetime, pause: float) -> None:
    """Write the figures for all replicas. The figures are due again in `pause` seconds. If the clock went back, the
    ends of the time that it repeats are not counted, and no end is counted twice."""
    await tx.fetch(KEEP, until, pause, orjson.dumps(asdict(measured)).decode())


READ = "select body::text as body from figures"


async def read(session: Session) -> Figures:
    """Return the figures of the last measurement."""
    return _read((await session.fetch(READ))[0]["body"])


def _read(body: str) -> Figures:
    values = orjson.loads(body)
    lists = {
        "work": Work,
        "lines": Line,
        "letters": Letters,
        "processes": Processes,
        "crews": Crew,
        "ended": Ended,
    }
    for name, kind in lists.items():
        values[name] = [kind(**item) for item in values.get(name, ())]
    values["labelled"] = [
        Labelled(**{**row, "durations": Took(**row["durations"])}) for row in values.get("labelled", ())
    ]
    values["took"] = {action: Took(**histogram) for action, histogram in values.get("took", {}).items()}
    return Figures(**values)
