"""The state of the installation in the figures that the first page, the API and `penstock top` share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from penstock.language.moves import BAD
from penstock.language.terms.waits import SLEEP_CAUSES
from penstock.operate import titles
from penstock.operate.activity import LATELY, SECONDS, Activity
from penstock.store.executions.execution_list import ExecutionFilter, ListedExecution
from penstock.store.processes.processes import Process
from penstock.store.session.database import Session
from penstock.store.upkeep.overview import OpenExecutions, percentile

NEWEST = 12
"""The number of failures that are listed."""
CAUSES = {
    "running": ("On workers", "a worker runs them"),
    "worker": ("Ready", "waiting for a free worker"),
    "limit": ("Limit", "waiting for a slot of a limit"),
    "route": ("No worker", "no online worker can run them"),
    "timer": ("Timer", "waiting for a retry or a delay"),
    "held": ("Held", "on hold until an operator releases them"),
    "paused": ("Paused", "paused workflows, and their tasks that have not started"),
    "executor": ("Executor", "waiting for an executor to schedule them"),
    "human": ("Inquiry", "waiting for an answer"),
    "event": ("Event", "waiting for an event"),
    "asleep": ("Sleeping", f"waiting for {SLEEP_CAUSES}; no worker is occupied"),
    "stopping": ("Stopping", "being stopped"),
    "workflow": (
        "Parents",
        "workflows and durable functions with open tasks or child executions",
    ),
}
"""The title and the explanation of each cause of waiting, in the order of display."""


@dataclass(frozen=True, slots=True)
class RecentActivity:
    """The activity of the last minute."""

    rate: Annotated[float, Field(description="The number of ended executions per second.")]
    ended: Annotated[int, Field(description="The number of ended executions, with the tasks of workflows.")]
    failed: Annotated[
        int,
        Field(
            description="The number of failed, timed out and abandoned executions, without the tasks of workflows."
        ),
    ]
    p50: Annotated[
        float | None,
        Field(
            description="The median of the seconds from creation to end, waits included, of all executions that ended in the "
            "last `span` seconds, without the tasks of workflows. It is exact to 1 %; null: none ended."
        ),
    ]
    p95: Annotated[
        float | None, Field(description="The 95th percentile of the same seconds; null: none ended.")
    ]
    span: Annotated[
        float,
        Field(
            description="The seconds of `p50` and `p95`: 900, or fewer while older executions are still being counted."
        ),
    ]


@dataclass(frozen=True, slots=True)
class Overview:
    """The state of the whole installation."""

    lately: Annotated[
        RecentActivity,
        Field(
            description="The executions that ended in the last minute, and the percentiles of the last 15 minutes."
        ),
    ]
    standing: Annotated[
        Sequence[OpenExecutions],
        Field(description="The executions that have not ended, one entry for each cause."),
    ]
    processes: Annotated[Sequence[Process], Field(description="The executors and workers.")]
    failures: Annotated[
        Sequence[ListedExecution], Field(description="The newest failed executions, newest first.")
    ]
    stale_threshold: Annotated[
        float,
        Field(description="The seconds without a heartbeat after which a process does not count as online."),
    ] = 60.0


def lately(activity: Activity) -> RecentActivity:
    """Return the figures of the last minute, and the percentiles of the counted part of the last 15 minutes."""
    slices = activity.slices[-LATELY:]
    count = sum(entry.ends for entry in slices)
    seconds = SECONDS * (LATELY - 1) + max(1.0, activity.seconds)
    durations = Counter[int]()
    for entry in activity.slices:
        durations.update(entry.bins)
    return RecentActivity(
        count / seconds,
        count,
        sum(entry.failed for entry in slices),
        percentile(durations, 0.5),
        percentile(durations, 0.95),
        float(SECONDS * len(activity.slices)),
    )


async def newest_failures(session: Session, tenants: Collection[str] | None = None) -> list[ListedExecution]:
    """Return the newest failed runs, of all tenants or of `tenants`, with their titles and the causes of their failures. Failed
    tasks of workflows are left out: the failure of a run names them."""
    return await titles.listed(session, ExecutionFilter(tenants=tenants, status=BAD), limit=NEWEST)


def summed_up(activity: Activity, failures: Sequence[ListedExecution], stale: float) -> Overview:
    """Return the overview of the activity and the failures. `stale`: seconds after which a silent process is not online."""
    standing = {group.cause: group for group in activity.standing}
    groups = [standing[cause] for cause in CAUSES if cause in standing]
    return Overview(lately(activity), groups, activity.processes, failures, stale)
