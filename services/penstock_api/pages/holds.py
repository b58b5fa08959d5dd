"""The page of holds: what is held, since when, until when and why, and how much waits for the release."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from penstock.client.holds import all_holds
from penstock.language.moves import REQUESTED
from penstock.store.admission.holds import KINDS, Hold
from penstock_api.auth.access import READ_ALL
from penstock_api.backend import Db
from penstock_api.pages.page import PageRouter, page

router: APIRouter = PageRouter("holds")


@router.get("/holds", dependencies=[READ_ALL])
async def show_all(request: Request, session: Db) -> Response:
    """Show the holds."""
    rows = [(hold, _filters(hold)) for hold in await all_holds(session)]
    return page(request, "holds.html", rows=rows, kinds=KINDS, every=5)


def _filters(hold: Hold) -> dict[str, Any] | None:
    """Return the filters of the list of what a hold covers; None for a hold that no filter of the list describes."""
    if hold.kind not in ("action", "tenant"):
        return None
    return {hold.kind: hold.name, "status": REQUESTED, "children": "true"}
