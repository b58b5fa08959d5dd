"""The first page: is all well, what ran lately, what waits for what."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from penstock.operate.activity import SECONDS, Activity
from penstock.operate.overview import CAUSES, lately, newest_failures
from penstock.store import execution_list
from penstock.store.execution_list import ExecutionFilter
from penstock_api.access import READ, Asked
from penstock_api.backend import Here
from penstock_api.changes import Watched
from penstock_api.pages.drawings import plot
from penstock_api.pages.page import PageRouter, page
from penstock_api.pages.templating import number, took

router: APIRouter = PageRouter("overview")

NEWEST = 12
"""Runs that are listed."""


@router.get("/", dependencies=[READ])
async def show(request: Request, here: Here, caller: Asked) -> Response:
    """Show the state of the installation. Callers of some tenants see only their own runs."""
    seen = None if caller.tenants is not None else await here.look_at_activity()
    tenants = caller.tenants
    async with here.reading.session() as session:
        newest = await execution_list.page(session, ExecutionFilter(tenants=tenants), limit=NEWEST)
        failures = await newest_failures(session, tenants)
    given = {"newest": newest, "failures": failures, "watched": Watched(tenants), "every": 5}
    return page(request, "overview.html", **{**given, **_drawn(seen)})


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
    last_minute = lately(seen)
    standing = {one.cause: one for one in seen.standing}
    return {
        "seen": seen,
        "throughput": good,
        "failed": bad,
        "latency": plot.lines([one.p50 for one in slices], [one.p95 for one in slices]),
        "rate": number(last_minute.rate),
        "bad": last_minute.failed,
        "ended": last_minute.ended,
        "p50": took(last_minute.p50),
        "p95": took(last_minute.p95),
        "minutes": SECONDS * len(slices) // 60,
        "standing": [(*CAUSES[cause], standing[cause]) for cause in CAUSES if cause in standing],
        "most": max((one.count for one in seen.standing), default=1),
        "workers": [one for one in seen.processes if one.kind == "worker"],
        "executors": [one for one in seen.processes if one.kind == "executor"],
    }
