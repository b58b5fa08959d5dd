"""The routes of holds."""

from __future__ import annotations

from penstock.client.holds import Holds, all_holds
from penstock.store.admission.holds import Hold
from penstock_api.auth.access import OPERATE_ALL, READ_ALL, Asked
from penstock_api.backend import Db
from penstock_api.models import holds as models
from penstock_api.routes.router import Router

router = Router("holds")


@router.get("/holds", dependencies=[READ_ALL])
async def list_holds(session: Db) -> list[Hold]:
    """List what is held, with the number of executions that wait."""
    return await all_holds(session)


@router.post("/holds", status_code=204, dependencies=[OPERATE_ALL])
async def hold(body: models.NewHold, session: Db, caller: Asked) -> None:
    """Hold an action or workflow, a pack, a route or a tenant: its new executions are stored, but do not start."""
    await Holds(session).hold(
        body.kind, body.name, by=caller.name, reason=body.reason, until=body.until, force=body.force
    )


@router.post("/holds/release", status_code=204, dependencies=[OPERATE_ALL])
async def release(body: models.ReleaseHold, session: Db) -> None:
    """Release what is held: at once, or at a rate."""
    await Holds(session).release(body.kind, body.name, body.rate)
