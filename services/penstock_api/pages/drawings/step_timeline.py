"""A Gantt chart of a durable function, which shows for each branch when its steps ran or waited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from uuid import UUID

from penstock.engine.durable.records import (
    ASK,
    MAP,
    RUN,
    SIGNAL,
    SLEEP,
    STARTED,
    STEP,
    SUPERSEDED,
    VALUE,
    VERSION,
    WAIT_FOR,
)
from penstock.language.moves import COMPLETED, FINAL, RUNNING, TIMEOUT, WAITING
from penstock.operate.durable_steps import Step, status_for_people
from penstock.store.executions.timelines import Stay
from penstock.store.session.noted_clock import noted
from penstock_api.pages.drawings.timeline import (
    HELD,
    RAN,
    Row,
    Scale,
    Segment,
    Timeline,
    by_execution,
    drawn,
    parts,
)

PARKED = (SLEEP, SIGNAL, ASK, WAIT_FOR)
"""The kinds of steps during which a run holds no worker."""
NOT_FINISHED = "not finished"
"""The shown status of a step that was under way when its run ended."""
ENDED = FINAL | {SUPERSEDED}
"""The statuses of steps that are over."""
INSTANTS = (VALUE, VERSION)
"""The kinds of steps that take no time, and are not drawn."""


def step_timeline(
    steps: Sequence[Step], start: datetime, end: datetime | None, stays: Sequence[Stay] = ()
) -> Timeline | None:
    """Return the chart of a run from `start` to `end`, or to now if it has not ended. Return None if no step takes time. `stays`
    are the statuses over time of the executions inside the run."""
    timed_steps = [step for step in steps if step.kind not in INSTANTS]
    if not timed_steps:
        return None
    scale = Scale.of(start, end or noted())
    stays_of = by_execution(stays)
    by_branch = sorted(timed_steps, key=lambda step: (step.branch, step.at))
    rows = [
        row
        for _, branch in groupby(by_branch, key=lambda step: step.branch)
        for row in _rows(list(branch), scale, stays_of, is_final=end is not None)
    ]
    return drawn(rows, scale)


def child_durations(steps: Sequence[Step], chart: Timeline | None) -> dict[str, float]:
    """Return the seconds that the chart shows for each step with an ended child execution, by label."""
    if chart is None:
        return {}
    labels = {step.label for step in steps if step.execution is not None and step.status in ENDED}
    seconds = {row.name: (row.ran or 0) + (row.waited or 0) for row in chart.rows}
    return {name: length for name, length in seconds.items() if name in labels and length}


def step_ends(
    steps: Sequence[Step], stays: Sequence[Stay], durations: Mapping[str, float]
) -> dict[str, datetime]:
    """Return the instants at which the ended steps ended, by label. A step with a child execution is recorded when the child
    starts, and a sleep when it begins. `durations` are those of children without a kept history."""
    stays_of = by_execution(stays)
    ends = {}
    for step in steps:
        if step.status not in ENDED:
            continue
        ends[step.label] = step.at
        if step.kind == SLEEP and step.status == COMPLETED:
            ends[step.label] = _until(step) or step.at
        elif step.execution is not None:
            untils = [stay.until for stay in stays_of.get(step.execution, ()) if stay.until is not None]
            ends[step.label] = max(untils, default=step.at + timedelta(seconds=durations.get(step.label, 0)))
    return ends


def step_status(step: Step, *, is_final: bool) -> str:
    """Return the status of a step for people. A step that has begun runs or waits, or its run ended first (`is_final`)."""
    if step.status != STARTED or step.paused or step.held:
        return status_for_people(step)
    if is_final:
        return NOT_FINISHED
    return WAITING if step.wait is not None or step.kind in PARKED else RUNNING


def _until(step: Step) -> datetime | None:
    """Return the instant that the result of the step names as its end; None for another result, as one set by hand."""
    until = step.result.get("until") if isinstance(step.result, dict) else None
    try:
        return datetime.fromisoformat(until) if isinstance(until, str) else None
    except ValueError:
        return None


def _rows(
    steps: Sequence[Step], scale: Scale, stays_of: Mapping[UUID, Sequence[Stay]], *, is_final: bool
) -> Iterator[Row]:
    """Yield the rows of a branch. A step begins when the previous step has ended.

    For a step that is a separate execution only its beginning is recorded. If its history is kept (`stays_of`), that says
    when it ran. Otherwise it counts as ended when the next step begins, or if it still waits, when the chart ends. Steps
    that began together may be in one branch.
    """
    previous_end = scale.start
    for step, next_step in pairwise([*steps, None]):
        assert step is not None
        next_begins = scale.end if next_step is None else _beginning(next_step)
        since, until = _span(step, previous_end, next_begins, scale.end)
        previous_end = max(previous_end, until)
        ran = step.kind in (STEP, RUN, MAP)
        segments = [scale.segment(RAN if ran else HELD, (since, until))]
        if step.kind == RUN and step.execution is not None and (stays := stays_of.get(step.execution)):
            stopped = step.paused or step.held
            segments = [scale.segment(*part) for part in parts(stays, scale.end, is_stopped=stopped)]
        if step.kind == STEP and step.wait is not None:  # it waits for its next attempt
            segments.append(scale.segment(HELD, (step.at, max(step.at, scale.end))))
        yield _row(step, segments, is_final)


def _beginning(step: Step) -> datetime:
    return step.at - timedelta(seconds=step.took)


def _span(
    step: Step, previous_end: datetime, next_begins: datetime, end: datetime
) -> tuple[datetime, datetime]:
    if step.kind == STEP:
        return _beginning(step), step.at
    if step.status not in ENDED:
        return step.at, max(step.at, end)
    is_over = step.status in (COMPLETED, TIMEOUT) and step.error is None
    if step.kind == SLEEP and is_over and (until := _until(step)) is not None:
        return step.at, max(step.at, min(until, end))  # the end of a sleep is not recorded
    if step.execution is not None:
        return step.at, max(step.at, next_begins)
    return min(previous_end, step.at), step.at


def _row(step: Step, segments: list[Segment], is_final: bool) -> Row:
    return Row(
        step.label,
        len(step.branch),
        step_status(step, is_final=is_final),
        step.execution,
        None,
        False,
        sum(segment.seconds for segment in segments if segment.kind != RAN),
        sum(segment.seconds for segment in segments if segment.kind == RAN),
        segments,
    )
