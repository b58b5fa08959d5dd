"""The first page: troubles, recent runs, and the waiting work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from penstock.operate import titles
from penstock.operate.activity import SECONDS, SLICES, Activity
from penstock.operate.overview import CAUSES, lately, newest_failures
from penstock.operate.why.answer import span
from penstock.store.admission import breakers, holds
from penstock.store.events import rule_errors
from penstock.store.executions.execution_list import ExecutionFilter
from penstock.store.outbox import dead_letters
from penstock.store.outbox.dead_letters import LetterFilter
from penstock.store.schedules import health
from penstock.store.session.database import Session
from penstock.store.upkeep.overview import percentile
from penstock_api.auth.access import READ, Asked
from penstock_api.backend import Here
from penstock_api.live.changes import Watched
from penstock_api.pages.drawings import plot
from penstock_api.pages.executions import OPEN
from penstock_api.pages.page import PageRouter, page
from penstock_api.pages.templating import number, took

router: APIRouter = PageRouter("overview")

NEWEST = 12
"""The number of runs to list."""
BREAKERS = 20
"""The maximum number of breakers to look at; the open ones come first."""
HOLDS = 5
"""The maximum number of holds to name."""
WHERE = {
    "running": "/executions?status=running",
    "limit": "/limits",
    "worker": "/workers",
    "route": "/workers",
    "executor": "/workers",
    "human": "/inquiries",
    "held": "/holds",
    "paused": "/executions?paused=true",
}
"""The page that tells more about executions which wait for a cause."""


@dataclass(frozen=True, slots=True)
class Attention:
    """A trouble that a person has to look at: the page about it, a sentence, and its instant, if it has one."""

    path: str
    says: str
    at: datetime | None = None


@router.get("/", dependencies=[READ])
async def show(request: Request, backend: Here, caller: Asked) -> Response:
    """Show the state of the installation. Callers that are limited to some tenants see only the runs of these."""
    activity = None if caller.tenants is not None else await backend.look_at_activity()
    tenants = caller.tenants
    async with backend.reading.session() as session:
        newest = await titles.listed(session, ExecutionFilter(tenants=tenants), limit=NEWEST)
        failures = await newest_failures(session, tenants)
        attention = [] if activity is None else await _attention(session)
    context = {
        "newest": newest,
        "failures": failures,
        "attention": attention,
        "watched": Watched(tenants),
        "every": 5,
    }
    return page(request, "overview.html", **{**context, **_drawn(activity, backend.settings.stale_threshold)})


async def _attention(session: Session) -> list[Attention]:
    """Return what a person has to look at: troubles of schedules, open breakers, holds, failed rules and dead letters."""
    troubles = [
        Attention(
            f"/schedules/{quote(trouble.schedule, safe='')}" if trouble.schedule else "/schedules",
            f"Schedule {trouble.schedule}: {trouble.says}"
            if trouble.schedule
            else f"Schedules: {trouble.says}",
        )
        for trouble in await health.troubles(session)
    ]
    troubles += [
        Attention(
            f"/limits/{quote(breaker.ref, safe='')}",
            f"The breaker {breaker.ref} is open"
            if breaker.state == "open"
            else f"The breaker {breaker.ref} releases waiting executions gradually",
            breaker.since,
        )
        for breaker in await breakers.states(session, None, BREAKERS)
        if breaker.state != "closed"
    ]
    for hold in await holds.newest(session, HOLDS):
        reason = f": {hold.reason}" if hold.reason else ""
        if hold.rate_count is None:
            text = f"The {hold.kind} {hold.name} was put on hold by {hold.by}{reason}"
        else:
            text = (
                f"The {hold.kind} {hold.name} is being released gradually. It was held by {hold.by}{reason}"
            )
        troubles.append(Attention("/holds", text, hold.since))
    for error in await rule_errors.newest(session, None, 1):
        text = f"The rule {error.rule} failed on an event: “{error.error}”"
        troubles.append(Attention("/rules#errors", text, error.at))
    for letter in await dead_letters.newest(session, LetterFilter(), limit=1):
        text = f"A message in the queue {letter.queue} could not be handled: “{letter.reason}”"
        troubles.append(Attention("/dead-letters", text, letter.last_at))
    return troubles


def _drawn(activity: Activity | None, stale: float) -> dict[str, Any]:
    """Return what the page draws of the activity. `stale`: seconds after which a silent worker does not count."""
    if activity is None:
        return {"seen": None}
    slices = activity.slices
    ages = [span((len(slices) - n) * SECONDS) for n in range(len(slices))]
    latency = plot.lines(*([percentile(entry.bins, part) for entry in slices] for part in (0.5, 0.95)))
    recent = lately(activity)
    standing = {entry.cause: entry for entry in activity.standing}
    return {
        "seen": activity,
        "ends": plot.bars(
            [entry.ends for entry in slices],
            [
                f"{age} ago: {entry.ends:,} {'execution' if entry.ends == 1 else 'executions'} ended within {SECONDS} s"
                for entry, age in zip(slices, ages, strict=True)
            ],
        ),
        "failed": plot.bars(
            [entry.failed for entry in slices],
            [
                f"{age} ago: {entry.failed:,} of {entry.runs:,} top-level executions failed, timed out or were abandoned"
                for entry, age in zip(slices, ages, strict=True)
            ],
        ),
        "latency": latency,
        "latency_top": took(latency.top) if any(latency.lines) else "",
        "rate": number(
            sum(entry.ends for entry in slices) / max(1, SECONDS * (len(slices) - 1) + activity.seconds)
        ),
        "bad": sum(entry.failed for entry in slices),
        "ended": sum(entry.ends for entry in slices),
        "runs": sum(entry.runs for entry in slices),
        "p50": took(recent.p50),
        "p95": took(recent.p95),
        "drawn": span(SECONDS * len(slices)),
        "whole": None if len(slices) == SLICES else span(SECONDS * SLICES),
        "seconds": SECONDS,
        "open": sum(entry.top_level for entry in activity.standing),
        "with_tasks": sum(entry.count for entry in activity.standing),
        "open_statuses": OPEN,
        "running": standing["running"].count if "running" in standing else 0,
        # The number of running executions comes from the statement that reads the open executions: heartbeats of
        # workers are seconds old.
        "in_use": sum(standing[cause].count for cause in ("running", "stopping") if cause in standing),
        "standing": [
            (*CAUSES[cause], standing[cause], WHERE.get(cause)) for cause in CAUSES if cause in standing
        ],
        "most": max((entry.count for entry in activity.standing), default=1),
        "workers": [
            entry for entry in activity.processes if entry.kind == "worker" and entry.is_online(stale)
        ],
    }
