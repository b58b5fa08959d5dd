"""The first page: troubles, recent runs, and the waiting work."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from penstock.operate.activity import SECONDS, Activity
from penstock.operate.overview import CAUSES, lately, newest_failures
from penstock.store.executions import execution_list
from penstock.store.executions.execution_list import ExecutionFilter
from penstock_api.auth.access import READ, Asked
from penstock_api.backend import Here
from penstock_api.live.changes import Watched
from penstock_api.pages.drawings import plot
from penstock_api.pages.page import PageRouter, page
from penstock_api.pages.templating import number, took

router: APIRouter = PageRouter("overview")

NEWEST = 12
"""The number of runs to list."""


@router.get("/", dependencies=[READ])
async def show(request: Request, backend: Here, caller: Asked) -> Response:
    """Show the state of the installation. Callers that are limited to some tenants see only the runs of these."""
    activity = None if caller.tenants is not None else await backend.look_at_activity()
    tenants = caller.tenants
    async with backend.reading.session() as session:
        newest = await execution_list.page(session, ExecutionFilter(tenants=tenants), limit=NEWEST)
        failures = await newest_failures(session, tenants)
    context = {"newest": newest, "failures": failures, "watched": Watched(tenants), "every": 5}
    return page(request, "overview.html", **{**context, **_drawn(activity)})


def _drawn(activity: Activity | None) -> dict[str, Any]:
    if activity is None:
        return {"seen": None}
    slices = activity.slices
    per_second = [entry.ends / SECONDS for entry in slices[:-1]]
    per_second.append(slices[-1].ends / max(1.0, activity.seconds))
    good = plot.bars(per_second, [f"{number(rate)}/s" for rate in per_second])
    bad = plot.bars(
        [entry.failed for entry in slices],
        [f"{entry.failed} of {entry.ends} ended badly" for entry in slices],
    )
    last_minute = lately(activity)
    standing = {entry.cause: entry for entry in activity.standing}
    return {
        "seen": activity,
        "throughput": good,
        "failed": bad,
        "latency": plot.lines([entry.p50 for entry in slices], [entry.p95 for entry in slices]),
        "rate": number(last_minute.rate),
        "bad": last_minute.failed,
        "ended": last_minute.ended,
        "p50": took(last_minute.p50),
        "p95": took(last_minute.p95),
        "minutes": SECONDS * len(slices) // 60,
        "standing": [(*CAUSES[cause], standing[cause]) for cause in CAUSES if cause in standing],
        "most": max((entry.count for entry in activity.standing), default=1),
        "workers": [entry for entry in activity.processes if entry.kind == "worker"],
        "executors": [entry for entry in activity.processes if entry.kind == "executor"],
    }
