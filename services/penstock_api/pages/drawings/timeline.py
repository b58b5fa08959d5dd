"""A Gantt chart of a run, which shows when each task waited and ran, and which tasks determined the run's duration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from penstock.language.moves import CANCELING, RUNNING, WAITING
from penstock.language.workflows.progress import TaskProgress
from penstock.store.executions.timelines import Stay

WIDTH = 1000.0
UNITS = (
    ("d", 86_400.0, 86_400.0),
    ("h", 3600.0, 3600.0),
    ("min", 60.0, 60.0),
    ("s", 1.0, 0.2),
    ("ms", 0.001, 0.0),
)
"""The units of an axis, each with its seconds and the smallest step that it labels."""
STEPS = (
    *(size * 10.0**power for power in range(-4, 1) for size in (1, 2, 5)),
    *(10.0, 20.0, 30.0),
    *(60.0 * minutes for minutes in (1, 2, 5, 10, 20, 30)),
    *(3600.0 * hours for hours in (1, 2, 5, 12)),
    *(86_400.0 * size * 10.0**power for power in range(5) for size in (1, 2, 5)),
)
"""The distances between the ticks of an axis in seconds."""
ROWS = 400
"""The maximum number of drawn rows, since more could not be read."""
RAN, HELD, QUEUED, BETWEEN = "ran", "held", "queued", "between"
KINDS = {RUNNING: RAN, CANCELING: RAN, WAITING: HELD}
"""The kind of time that a status stands for: running, or waiting without a worker. All others wait for a slot,
a worker or an instant. A workflow that runs is `BETWEEN` tasks while none of its tasks is open, as during a pause."""

Interval = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Segment:
    kind: str
    x: float
    width: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Row:
    """A row for a task, or for a task inside the workflow that a task runs (`depth`)."""

    name: str
    depth: int
    status: str
    execution: UUID | None
    items: int | None
    critical: bool
    waited: float | None
    ran: float | None
    segments: Sequence[Segment]
    note: str | None = None
    """The reason why a task was skipped."""


@dataclass(frozen=True, slots=True)
class Timeline:
    rows: Sequence[Row]
    undrawn: int
    """The number of rows that are not drawn."""
    ticks: Sequence[tuple[float, str]]
    """The ticks: the position on the axis, and the time from the beginning as a label."""
    seconds: float


def timeline(
    tasks: Sequence[TaskProgress],
    stays: Sequence[Stay],
    run: UUID,
    start: datetime,
    end: datetime,
) -> Timeline:
    """Return the chart of the tasks of `run`. `stays` are the statuses of the executions inside it over time."""
    scale = Scale.of(start, end)
    tasks_of = {stay.id: (stay.parent, stay.task) for stay in stays}
    by_task: dict[tuple[UUID, str], list[Stay]] = {}
    for execution, stays_inside in by_execution(stays).items():
        if execution in tasks_of:
            by_task.setdefault(tasks_of[execution], []).extend(stays_inside)
    return drawn(list(_rows(tasks, by_task, run, scale, 0)), scale)


def by_execution(stays: Sequence[Stay]) -> dict[UUID, list[Stay]]:
    """Return the stays of each execution, together with those of the executions inside it."""
    parents = {stay.id: stay.parent for stay in stays}
    grouped: dict[UUID, list[Stay]] = {}
    for stay in stays:
        execution: UUID | None = stay.id
        while execution is not None:
            grouped.setdefault(execution, []).append(stay)
            execution = parents.get(execution)
    return grouped


def drawn(rows: Sequence[Row], scale: Scale) -> Timeline:
    """Return a timeline with as many of these rows as are legible, above their axis."""
    return Timeline(rows[:ROWS], max(0, len(rows) - ROWS), _ticks(scale.seconds), scale.seconds)


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale of an axis, from an instant to a position."""

    start: datetime
    end: datetime
    seconds: float
    unit: float

    @classmethod
    def of(cls, start: datetime, end: datetime) -> Scale:
        seconds = max(end - start, timedelta(milliseconds=1)).total_seconds()
        return cls(start, end, seconds, WIDTH / seconds)

    def segment(self, kind: str, interval: Interval) -> Segment:
        x = max(0.0, (interval[0] - self.start).total_seconds() * self.unit)
        seconds = (interval[1] - interval[0]).total_seconds()
        width = min(WIDTH - min(x, WIDTH - 2), max(2.0, seconds * self.unit))
        return Segment(kind, round(min(x, WIDTH - 2), 1), round(width, 1), seconds)


def _rows(
    tasks: Sequence[TaskProgress],
    by_task: Mapping[tuple[UUID, str], Sequence[Stay]],
    run: UUID,
    scale: Scale,
    depth: int,
) -> Iterator[Row]:
    for task in sorted(tasks, key=lambda progress: (progress.begun is None, progress.begun or scale.start)):
        stays = by_task.get((run, task.name), ())
        stopped = task.paused or task.held
        segments = [scale.segment(*part) for part in parts(stays, scale.end, is_stopped=stopped)]
        yield Row(
            task.name,
            depth,
            task.shown_status,
            task.execution,
            task.items,
            task.critical,
            task.waited,
            task.ran,
            segments,
            task.skipped_because,
        )
        if task.inside and task.execution is not None:
            yield from _rows(task.inside, by_task, task.execution, scale, depth + 1)


def parts(stays: Iterable[Stay], now: datetime, *, is_stopped: bool = False) -> list[tuple[str, Interval]]:
    """Return the parts of a task's time in order: an execution ran, waited for a human or an event, or was queued. Of a task
    that is paused or held (`is_stopped`), what is queued now waits, too."""
    during: dict[str, list[Interval]] = {RAN: [], HELD: [], QUEUED: [], BETWEEN: []}
    for stay in stays:
        kind = KINDS.get(stay.status, QUEUED)
        if stay.is_workflow and kind == RAN:
            kind = BETWEEN
        elif kind == QUEUED and is_stopped and stay.until is None:
            kind = HELD
        during[kind].append((stay.since, max(stay.until or now, stay.since)))
    ran = _joined(during[RAN])
    held = _without(_joined(during[HELD]), ran)
    queued = _without(_without(_joined(during[QUEUED]), ran), held)
    between = _without(_without(_joined(during[BETWEEN]), ran), queued)
    held = _joined([*held, *between])
    segments = [
        (kind, interval) for kind, many in ((RAN, ran), (HELD, held), (QUEUED, queued)) for interval in many
    ]
    return sorted(segments, key=lambda part: part[1])


def _joined(intervals: Iterable[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for since, until in sorted(intervals):
        if merged and since <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(until, merged[-1][1]))
        else:
            merged.append((since, until))
    return merged


def _without(intervals: Sequence[Interval], covers: Sequence[Interval]) -> list[Interval]:
    """Return the parts of `intervals` that no interval of `covers` covers. Both are merged and sorted."""
    remaining, first = [], 0
    for since, until in intervals:
        while first < len(covers) and covers[first][1] <= since:
            first += 1
        at = first
        while at < len(covers) and covers[at][0] < until:
            if covers[at][0] > since:
                remaining.append((since, covers[at][0]))
            since = max(since, covers[at][1])
            at += 1
        if since < until:
            remaining.append((since, until))
    return remaining


def _ticks(seconds: float) -> list[tuple[float, str]]:
    """Return the ticks at up to five multiples of a round time. Labels are in the unit of that time, so none is rounded."""
    step = next((step for step in STEPS if seconds / step <= 5), STEPS[-1])
    unit, size = next((unit, size) for unit, size, smallest in UNITS if step >= smallest)
    return [
        (round(n * step / seconds * WIDTH, 1), f"{n * step / size:g} {unit}" if n else "0")
        for n in range(int(seconds / step) + 1)
    ]
