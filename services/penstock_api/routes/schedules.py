"""The routes of schedules: create, preview, change, run, backfill."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from penstock.language.schedules.spec import Preview
from penstock.operate import definitions
from penstock.store.schedules.backfill import BackfillFire
from penstock.store.schedules.health import ScheduleTrouble
from penstock.store.schedules.reading import Fire, FireStats, ScheduleSummary
from penstock_api.auth.access import DEFINE_ALL, OPERATE_ALL, READ_ALL
from penstock_api.backend import Db, OnSchedules
from penstock_api.models import schedules as models
from penstock_api.models.definitions import Definition
from penstock_api.models.model import Instant
from penstock_api.routes.router import Router

router = Router("schedules")


@router.get("/schedules", dependencies=[READ_ALL])
async def list_schedules(schedules: OnSchedules) -> list[ScheduleSummary]:
    """List the schedules, each with its next fire and the outcome of its last one."""
    return [row.summary for row in await schedules.all()]


@router.post("/schedules", status_code=201, dependencies=[DEFINE_ALL])
async def create(body: models.CreateSchedule, schedules: OnSchedules) -> models.ScheduleChanged:
    """Create a schedule."""
    change = await schedules.create(body.ref, body.model_dump(exclude={"ref"}, exclude_none=True))
    return models.ScheduleChanged(what=change.what, schedule=await show(body.ref, schedules))


@router.get("/schedule-health", dependencies=[READ_ALL])
async def health(schedules: OnSchedules) -> list[ScheduleTrouble]:
    """List the problems of schedules, by name. The list is empty if there is none."""
    return await schedules.health()


@router.post("/schedule-pauses", dependencies=[OPERATE_ALL])
async def pause_many(body: models.PauseSchedules, schedules: OnSchedules) -> list[ScheduleSummary]:
    """Pause several schedules for a time, after which they fire again by themselves."""
    for ref in body.refs:  # so that a misspelt ref pauses nothing
        await schedules.get(ref)
    paused = [await schedules.pause(ref, body.seconds) for ref in body.refs]
    return [row.summary for row in paused]


@router.get("/schedules/{ref}", dependencies=[READ_ALL])
async def show(ref: str, schedules: OnSchedules) -> ScheduleSummary:
    """Show a schedule and its state."""
    return (await schedules.get(ref)).summary


@router.get("/schedules/{ref}/definition", dependencies=[READ_ALL])
async def definition(ref: str, session: Db) -> Definition:
    """Return the content of a schedule's definition; secrets are `***`."""
    return Definition.model_validate(await definitions.one(session, ["schedule"], ref))


@router.put("/schedules/{ref}", dependencies=[DEFINE_ALL])
async def put_schedule(ref: str, body: models.PutSchedule, schedules: OnSchedules) -> models.ScheduleChanged:
    """Create a schedule, or replace its options."""
    [change] = await schedules.put(definitions.schedule_of(ref, body.model_dump(exclude_none=True)))
    return models.ScheduleChanged(what=change.what, schedule=await show(ref, schedules))


@router.patch("/schedules/{ref}", dependencies=[DEFINE_ALL])
async def update(ref: str, body: models.ChangeSchedule, schedules: OnSchedules) -> models.ScheduleChanged:
    """Change some options of a schedule. The others stay."""
    change = await schedules.update(ref, body.model_dump(exclude_none=True))
    return models.ScheduleChanged(what=change.what, schedule=await show(ref, schedules))


@router.delete("/schedules/{ref}", status_code=204, dependencies=[DEFINE_ALL])
async def delete(ref: str, schedules: OnSchedules) -> None:
    """Delete a schedule. Its running executions continue, and ended ones stay in the lists."""
    await schedules.delete(ref)


@router.get("/schedules/{ref}/preview", dependencies=[READ_ALL])
async def preview(
    ref: str,
    schedules: OnSchedules,
    count: Annotated[int, Query(ge=1, le=1000, description="The number of fires to return.")] = 10,
) -> list[Preview]:
    """Show the next fires, in the zone's time, with notes on clock changes."""
    return await schedules.preview(ref, count)


@router.get("/schedules/{ref}/history", dependencies=[READ_ALL])
async def history(
    ref: str,
    schedules: OnSchedules,
    before: Annotated[Instant | None, Query(description="Only fires before this instant.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> list[Fire]:
    """List the newest fires of a schedule, with outcome and origin."""
    return await schedules.history(ref, limit, before)


@router.get("/schedules/{ref}/stats", dependencies=[READ_ALL])
async def stats(
    ref: str,
    schedules: OnSchedules,
    seconds: Annotated[float, Query(gt=0, le=3e8, description="The seconds to look back.")] = 86_400,
) -> FireStats:
    """Return counts and durations of the fires that were due in a recent period."""
    return await schedules.stats(ref, seconds)


@router.post("/schedules/{ref}/enable", dependencies=[OPERATE_ALL])
async def enable(ref: str, schedules: OnSchedules) -> ScheduleSummary:
    """Enable a schedule. It fires from now on."""
    return (await schedules.enable(ref)).summary


@router.post("/schedules/{ref}/disable", dependencies=[OPERATE_ALL])
async def disable(ref: str, schedules: OnSchedules) -> ScheduleSummary:
    """Disable a schedule. It does not fire until it is enabled again."""
    return (await schedules.disable(ref)).summary


@router.post("/schedules/{ref}/pause", dependencies=[OPERATE_ALL])
async def pause(ref: str, body: models.PauseSchedule, schedules: OnSchedules) -> ScheduleSummary:
    """Pause a schedule for a time, after which it fires again by itself."""
    return (await schedules.pause(ref, body.seconds)).summary


@router.post("/schedules/{ref}/run", status_code=201, dependencies=[OPERATE_ALL])
async def run(ref: str, schedules: OnSchedules) -> Fire:
    """Fire a schedule now, enabled or not, under its overlap policy."""
    return await schedules.run(ref)


@router.post("/schedules/{ref}/backfill", dependencies=[OPERATE_ALL])
async def backfill(ref: str, body: models.Backfill, schedules: OnSchedules) -> list[BackfillFire]:
    """Start the missing executions of a past range, one for each fire. A repeated call starts nothing twice."""
    return await schedules.backfill(ref, body.first, body.last, dry_run=body.dry_run)
