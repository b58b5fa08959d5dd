"""The changes over HTTP, with actor and reason."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from penstock.store import audit
from penstock_api.access import ADMIN_ALL
from penstock_api.backend import Lists
from penstock_api.models import operations as models
from penstock_api.models.model import Page
from penstock_api.routes.router import Router

router = Router("tokens")


@router.get("/audit", dependencies=[ADMIN_ALL])
async def list_changes(
    session: Lists,
    by: Annotated[str | None, Query(description="Only those of this caller, such as token:ci.")] = None,
    before: Annotated[int | None, Query(ge=0, le=2**62, description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many.")] = 50,
) -> Page[models.AuditedChange]:
    """Changes, the newest first. Starts and events are not here: they are kept with who made them."""
    rows = await audit.newest(session, before, by, limit)
    last = str(rows[-1].id) if len(rows) == limit else None
    return Page(items=[models.AuditedChange.model_validate(row) for row in rows], next=last)
