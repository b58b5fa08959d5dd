"""The pages of schedules, with their next and past fires."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fastapi import APIRouter, Request, Response

from penstock.client.schedules import Schedules
from penstock.operate import definitions
from penstock_api.auth.access import READ_ALL
from penstock_api.backend import Db, OnSchedules
from penstock_api.models.schedules import Schedule
from penstock_api.pages.page import PageRouter, page

router: APIRouter = PageRouter("schedules")

DRAWN = 60
"""The number of schedules whose next fires are drawn, since each takes some time to compute."""
FIRES = 48
"""The maximum number of drawn fires of each schedule."""
DAY = timedelta(days=1)
WIDTH = 1000.0
PREVIEWED, PAST = 10, 20


@router.get("/schedules", dependencies=[READ_ALL])
async def show_all(request: Request, schedules: OnSchedules, find: str = "") -> Response:
    """Show all schedules, and the fires of the next 24 hours."""
    entries = [Schedule.model_validate(row) for row in await schedules.all()]
    rows = [schedule for schedule in entries if find.lower() in schedule.ref.lower()]
    rows.sort(
        key=lambda schedule: (schedule.next_due is None, schedule.next_due or datetime.now(UTC), schedule.ref)
    )
    fires = {
        schedule.ref: await _fires(schedules, schedule)
        for schedule in rows[:DRAWN]
        if schedule.next_due is not None
    }
    return page(
        request,
        "schedules.html",
        rows=rows,
        all=len(entries),
        find=find,
        fires=fires,
        trouble=await schedules.health(),
        every=10,
    )


async def _fires(schedules: Schedules, schedule: Schedule) -> list[float]:
    """Return the positions of the next fires on an axis of 24 hours."""
    now = datetime.now(UTC)
    if schedule.state != "active" or schedule.next_due is None or schedule.next_due > now + DAY:
        return []
    due = [fire.instant for fire in await schedules.preview(schedule.ref, FIRES)]
    return [round((at - now) / DAY * WIDTH, 1) for at in due if now <= at < now + DAY]


@router.get("/schedules/{ref}", dependencies=[READ_ALL])
async def show(ref: str, request: Request, session: Db, schedules: OnSchedules) -> Response:
    """Show a schedule, with its next and its newest fires."""
    return page(
        request,
        "schedule.html",
        one=Schedule.model_validate(await schedules.get(ref)),
        definition=(await definitions.one(session, ["schedule"], ref))["definition"],
        preview=await schedules.preview(ref, PREVIEWED),
        history=await schedules.history(ref, PAST, None),
        stats=await schedules.stats(ref, DAY.total_seconds()),
        every=5,
    )
