"""Rules: which there are, and the events on which they have failed."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from penstock.client import rule_errors
from penstock.operate import definitions
from penstock_api.access import READ, Asked
from penstock_api.backend import Db
from penstock_api.pages.page import PageRouter, page

router: APIRouter = PageRouter("rules")

ERRORS = 50
"""The newest that are shown."""


@router.get("/rules", dependencies=[READ])
async def show(request: Request, session: Db, caller: Asked, rule: str = "") -> Response:
    """All of them; who sees all tenants sees the errors, too, of one `rule` if it is named."""
    rows = await definitions.rules(session)
    errors = []
    if caller.tenants is None:
        errors = await rule_errors.newest(session, rule=rule or None, limit=ERRORS)
    return page(request, "rules.html", rows=rows, errors=errors, rule=rule, every=10)
