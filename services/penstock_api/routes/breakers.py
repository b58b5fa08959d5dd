"""The routes of breakers."""

from __future__ import annotations

from penstock.client.breakers import Breakers, all_breakers
from penstock.store.admission.breakers import BreakerState
from penstock_api.auth.access import OPERATE_ALL, READ_ALL, Asked
from penstock_api.backend import Db
from penstock_api.models import breakers as models
from penstock_api.routes.router import Router

router = Router("breakers")


@router.get("/breakers", dependencies=[READ_ALL])
async def list_breakers(session: Db) -> list[BreakerState]:
    """List at most 1,000 breakers, open ones first, with the number of executions that wait."""
    return await all_breakers(session)


@router.post("/breakers/open", status_code=204, dependencies=[OPERATE_ALL])
async def open_breaker(body: models.OpenBreaker, session: Db, caller: Asked) -> None:
    """Open a breaker by hand: executions of its actions wait, and keep their place in the queue."""
    await Breakers(session).open(
        body.ref, body.parameters, by=caller.name, reason=body.reason, until=body.until
    )


@router.post("/breakers/close", status_code=204, dependencies=[OPERATE_ALL])
async def close_breaker(body: models.CloseBreaker, session: Db) -> None:
    """Close a breaker: what waits is released gradually, or at once."""
    await Breakers(session).close(body.ref, body.parameters, at_once=body.at_once)
