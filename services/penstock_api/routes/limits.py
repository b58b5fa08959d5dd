"""The routes of limits, their holders and their waiters."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from penstock.store.admission import limit_holders, waiting_work
from penstock.store.admission.limits import TOTALS_HOURS, LimitInForce, LimitTotals
from penstock.store.admission.limits import totals as limit_totals
from penstock.store.session import clock
from penstock_api.auth.access import DEFINE_ALL, READ_ALL
from penstock_api.backend import Db, Here, Lists, OnLimits
from penstock_api.models import limits as models
from penstock_api.routes.router import Router

router = Router("limits")

Most = Annotated[int, Query(ge=1, le=10_000, description="The maximum number to return.")]


@router.get("/limits", dependencies=[READ_ALL])
async def list_limits(limits: OnLimits) -> list[LimitInForce]:
    """List the limits in force, with the number of holders and waiters."""
    return await limits.all()


@router.get("/limits/{ref}", dependencies=[READ_ALL])
async def show(ref: str, limits: OnLimits) -> LimitInForce:
    """Show a limit."""
    return await limits.get(ref)


@router.get("/limits/{ref}/totals", dependencies=[READ_ALL])
async def totals(
    ref: str,
    session: Lists,
    limits: OnLimits,
    hours: Annotated[
        float, Query(gt=0, le=TOTALS_HOURS, description="The hours to look back.")
    ] = TOTALS_HOURS,
) -> LimitTotals:
    """Count the attempts that requested, got and released a slot of a limit."""
    await limits.get(ref)
    since = await clock.in_seconds(session, -hours * 3600)
    return (await limit_totals(session, since, ref))[0]


@router.get("/limits/{ref}/holders", dependencies=[READ_ALL])
async def holders(ref: str, session: Db, limits: OnLimits, limit: Most = 100) -> list[limit_holders.Holder]:
    """List the holders of a limit's slots, the oldest first."""
    await limits.get(ref)
    return await limit_holders.holders(session, ref, limit)


@router.get("/limits/{ref}/waiters", dependencies=[READ_ALL])
async def waiters(ref: str, session: Db, limits: OnLimits, limit: Most = 100) -> list[limit_holders.Waiter]:
    """List the waiters of a limit, by group, in the order in which they will start."""
    await limits.get(ref)
    return await limit_holders.waiters(session, ref, limit)


@router.patch("/limits/{ref}", dependencies=[DEFINE_ALL])
async def change(ref: str, body: models.SetLimit, limits: OnLimits) -> LimitInForce:
    """Change a limit, or create one. It is in force at once and overrides applied definitions, until it is removed."""
    return await limits.set(ref, **body.model_dump(exclude_unset=True))


@router.delete("/limits/{ref}", dependencies=[DEFINE_ALL])
async def remove(ref: str, limits: OnLimits) -> models.RemovedLimit:
    """Undo the manual change of a limit, so that the declared one is in force again. If there is
    no manual change, this removes the declared limit until a definition of it is applied again."""
    row = await limits.remove(ref)
    return models.RemovedLimit(ref=ref, in_force=row)


@router.get("/lines", dependencies=[READ_ALL])
async def lines(session: Db, limit: Most = 20) -> list[waiting_work.WaitingLine]:
    """List the queues of executions that wait for a limit or a worker, the longest first. A limit with a
    key (`by`) has a queue for each key, that is, for each combination of parameter values (`group_value`)."""
    return await waiting_work.lines(session, limit)


@router.get("/queues", dependencies=[READ_ALL])
async def queues(session: Db, backend: Here) -> list[waiting_work.RouteWork]:
    """List the work that waits for workers, by route."""
    return await waiting_work.routes(session, backend.settings.stale_threshold)
