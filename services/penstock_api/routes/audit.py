"""The routes of the audit: changes over HTTP and by commands, and refusals, with actor, values and reason."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from penstock.errors import NotFound
from penstock.language.terms.outside_names import check_tenant
from penstock.operate.audit import Head
from penstock.store.access import audit
from penstock_api.auth.access import ADMIN_ALL
from penstock_api.backend import Db, Lists
from penstock_api.models import operations as models
from penstock_api.models.model import Instant, Page
from penstock_api.routes.router import Router

router = Router("tokens")

Since = Annotated[Instant | None, Query(description="Only changes at this instant or later.")]
Until = Annotated[Instant | None, Query(description="Only changes before this instant.")]


@router.get("/audit", dependencies=[ADMIN_ALL])
async def list_changes(
    session: Lists,
    by: Annotated[str | None, Query(description="Only changes by this caller, such as token:ci.")] = None,
    operation: Annotated[
        str | None,
        Query(
            description="Only operations that begin with this text: `tokens_`, which also matches the commands `penstock tokens`."
        ),
    ] = None,
    target: Annotated[str | None, Query(description="Only targets that begin with this text.")] = None,
    outcome: Annotated[
        str | None, Query(description="Only with this outcome: done, refused or unchanged.")
    ] = None,
    role: Annotated[str | None, Query(description="Only rows that this database role wrote.")] = None,
    tenant: Annotated[str | None, Query(description="Only changes whose values name this tenant.")] = None,
    since: Since = None,
    until: Until = None,
    before: Annotated[
        int | None, Query(ge=0, le=2**62, description="The value of `next` of the previous page.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="The maximum number to return.")] = 50,
) -> Page[audit.AuditedChange]:
    """List the changes and refusals, newest first."""
    matching = audit.AuditFilter(
        by, operation, target, outcome, role, since, until, None if tenant is None else check_tenant(tenant)
    )
    rows = await audit.newest(session, matching, end=before, limit=limit)
    last = str(rows[-1].id) if len(rows) == limit else None
    return Page(items=rows, next=last)


@router.get("/audit/head", dependencies=[ADMIN_ALL])
async def head(session: Db) -> models.AuditHead:
    """Return the end of the audit's hash chain. Store this value elsewhere: with it you can prove
    later that no earlier row was edited."""
    chain = await audit.chain(session)
    if chain is None:
        raise NotFound(
            "the row with the end of the hash chain is missing", hint="Run `penstock audit verify`."
        )
    return models.AuditHead(
        head=str(Head(chain.position, chain.seal)), position=chain.position, unsealed=chain.unsealed
    )
