"""The page of subscriptions: programs that are called when executions change status."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Request, Response

from penstock.language.moves import STATUSES
from penstock.store.access import subscriptions
from penstock.store.session.master_keys import key_problem
from penstock_api.auth.access import READ_ALL
from penstock_api.backend import Db, Here
from penstock_api.models import subscriptions as models
from penstock_api.pages.page import PageRouter, page
from penstock_api.pages.request_form import request_fields

router: APIRouter = PageRouter("subscriptions")


@router.get("/subscriptions", dependencies=[READ_ALL])
async def show(request: Request, session: Db, backend: Here, change: str = "") -> Response:
    """Show the subscriptions, with a form to create one, or to `change` the one of this name."""
    rows = await subscriptions.listed(session)
    changed = next((row for row in rows if row.name == change), None)
    value = {} if changed is None else asdict(changed)
    return page(
        request,
        "subscriptions.html",
        rows=rows,
        changed=changed,
        put=request_fields(models.PutSubscription, value, {"statuses": STATUSES}),
        key_problem=key_problem(backend.settings),
        every=5,
    )
