"""The first page: is all well, what ran lately, what waits for what."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from penstock.language.moves import ABANDONED, FAILED, TIMEOUT
from penstock.store import execution_list
from penstock.store.execution_list import ExecutionFilter
from penstock_api.access import READ, Asked
from penstock_api.backend import Here
from penstock_api.pages.activity import SECONDS, Activity, ActivityWatch
from penstock_api.pages.drawings import plot
from penstock_api.pages.page import PageRouter, page
from penstock_api.pages.templating import number, took

router: APIRouter = PageRouter("overview")

NEWEST = 12
"""Runs, and failures, that are listed."""
LATELY = 4
"""Slices that the figures are of: a minute."""

CAUSES = {
    "running": ("Running", "on workers"),
    "worker": ("Ready", "for a worker of their route"),
    "limit": ("Limit", "in line for a slot"),
    "route": ("No worker", "that lives can run them"),
    "timer": ("Timer", "a retry, a delay"),
    "executor": ("Executor", "to be scheduled"),
    "human": ("Human", "an inquiry to be answered"),
    "event": ("Event", "to happen"),
    "stopping": ("Stopping", "asked to end"),
    "workflow": ("Workflows", "under way"),
}
"""What each cause is called, and what is meant."""


@router.get("/", dependencies=[READ])
async def show(request: Request, here: Here, caller: Asked) -> Response:
    """How it all goes. Callers of some tenants see their own runs alone."""
    seen = None if caller.tenants is not None else await watch_of(request).look(here)
    tenants = caller.tenants
    async with here.pool.session() as session:
        newest = await execution_list.page(session, ExecutionFilter(tenants=tenants), limit=NEWEST)
        failures = await execution_list.page(
            session,
            ExecutionFilter(tenants=tenants, status=[FAILED, TIMEOUT, ABANDONED], children=True),
            limit=NEWEST,
        )
    given = {"newest": newest, "failures": failures, "stream": "", "every": 5}
    return page(request, "overview.html", **{**given, **_drawn(seen)})


def watch_of(request: Request) -> ActivityWatch:
    """That of this process."""
    state = request.app.state
    if not hasattr(state, "activity"):
        state.activity = ActivityWatch()
    found: ActivityWatch = state.activity
    return found


def _drawn(seen: Activity | None) -> dict[str, Any]:
    if seen is None:
        return {"seen": None}
    slices = seen.slices
    per_second = [one.ended / SECONDS for one in slices[:-1]]
    per_second.append(slices[-1].ended / max(1.0, seen.seconds))
    good = plot.bars(per_second, [f"{number(rate)}/s" for rate in per_second])
    bad = plot.bars(
        [one.failed for one in slices],
        [f"{one.failed} of {one.ended} ended badly" for one in slices],
    )
    lately = slices[-LATELY:]
    ended = sum(one.ended for one in lately)
    seconds = SECONDS * (LATELY - 1) + max(1.0, seen.seconds)
    standing = {one.cause: one for one in seen.standing}
    return {
        "seen": seen,
        "throughput": good,
        "failed": bad,
        "latency": plot.lines([one.p50 for one in slices], [one.p95 for one in slices]),
        "rate": number(ended / seconds),
        "bad": sum(one.failed for one in lately),
        "ended": ended,
        "p50": took(next((one.p50 for one in reversed(slices) if one.p50 is not None), None)),
        "p95": took(next((one.p95 for one in reversed(slices) if one.p95 is not None), None)),
        "minutes": SECONDS * len(slices) // 60,
        "standing": [(*CAUSES[cause], standing[cause]) for cause in CAUSES if cause in standing],
        "most": max((one.count for one in seen.standing), default=1),
        "workers": [one for one in seen.processes if one.kind == "worker"],
        "executors": [one for one in seen.processes if one.kind == "executor"],
    }
