"""The pages of limits: their bounds, the holders of slots, and the next executions in each lane."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from penstock.store.admission import breakers, limit_holders, waiting_work
from penstock_api.auth.access import READ_ALL
from penstock_api.backend import Db, OnLimits
from penstock_api.pages.page import PageRouter, page

router: APIRouter = PageRouter("limits")

LINES = 50
MOST = 100
"""The maximum number of holders, and of waiters, to list."""


@router.get("/limits", dependencies=[READ_ALL])
async def show_all(request: Request, session: Db, limits: OnLimits) -> Response:
    """Show the limits in force, the breakers that are not closed, and the longest lanes."""
    lines = await waiting_work.lines(session, LINES)
    broken = [row for row in await breakers.states(session, None, LINES) if row.state != "closed"]
    return page(request, "limits.html", rows=await limits.all(), lines=lines, broken=broken, every=2)


@router.get("/limits/{ref}", dependencies=[READ_ALL])
async def show(ref: str, request: Request, session: Db, limits: OnLimits) -> Response:
    """Show a limit."""
    return page(
        request,
        "limit.html",
        one=await limits.get(ref),
        holders=await limit_holders.holders(session, ref, MOST),
        waiters=await limit_holders.waiters(session, ref, MOST),
        every=2,
    )
