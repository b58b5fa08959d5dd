"""The page of the audit: changes and refusals, with their callers and values, and the end of the chain that proves them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from penstock.operate.audit import Head, plain
from penstock.store.access import audit
from penstock.store.session.audited_change import DONE, REFUSED, UNCHANGED
from penstock_api.auth.access import ADMIN_ALL
from penstock_api.backend import Lists
from penstock_api.models.model import Day
from penstock_api.pages.page import PageRouter, page

router: APIRouter = PageRouter("audit")

PAGE = 50
LAST_DAY = date(9999, 1, 1)
"""The last day with a next day."""


@router.get("/audit", dependencies=[ADMIN_ALL])
async def show_all(
    request: Request,
    session: Lists,
    by: str = "",
    operation: str = "",
    target: str = "",
    outcome: str = "",
    tenant: str = "",
    since: Annotated[Day | Literal[""], Query(description="The first day, in UTC.")] = "",
    until: Annotated[Day | Literal[""], Query(description="The last day, in UTC.")] = "",
    end: Annotated[int | None, Query(alias="before", ge=0, le=2**62)] = None,
) -> Response:
    """Show the newest changes and refusals, by caller, operation, target, outcome, tenant and day."""
    matching = audit.AuditFilter(
        by=by or None,
        operation=operation or None,
        target=target or None,
        outcome=outcome or None,
        tenant=tenant or None,
        since=_midnight(since) if since else None,
        until=_midnight(min(until, LAST_DAY) + timedelta(days=1)) if until else None,
    )
    rows = await audit.newest(session, matching, end=end, limit=PAGE + 1)
    chain = await audit.chain(session)
    return page(
        request,
        "audit.html",
        rows=[(row, plain(row)["details"]) for row in rows[:PAGE]],
        after=rows[PAGE - 1].id if len(rows) > PAGE else None,
        before=end,
        asked={
            "by": by,
            "operation": operation,
            "target": target,
            "outcome": outcome,
            "tenant": tenant,
            "since": str(since),
            "until": str(until),
        },
        outcomes=(DONE, REFUSED, UNCHANGED),
        chain=chain,
        head=Head(chain.position, chain.seal) if chain else None,
        every=None if end else 5,
    )


def _midnight(day: date) -> datetime:
    """Return the first instant of a day in UTC."""
    return datetime.combine(day, time(), UTC)
