"""The page of secrets. Their values can be set, and never read."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Request, Response

from penstock.store.access import secrets
from penstock.store.session.master_keys import key_problem
from penstock_api.auth.access import READ, Asked, Tenants
from penstock_api.backend import Db, Here
from penstock_api.models import secrets as models
from penstock_api.pages.page import PageRouter, first_tenant, page
from penstock_api.pages.request_form import request_fields

router: APIRouter = PageRouter("secrets")


@router.get("/secrets", dependencies=[READ])
async def show(request: Request, session: Db, backend: Here, tenants: Tenants, caller: Asked) -> Response:
    """Show the names of secrets, with forms to set and delete them."""
    form_fields = [
        replace(field, kind="long") if field.name == "value" else field
        for field in request_fields(models.SetSecret, {"tenant": first_tenant(caller)})
    ]
    return page(
        request,
        "secrets.html",
        rows=await secrets.listed(session, tenants),
        put=form_fields,
        key_problem=key_problem(backend.settings),
        every=5,
    )
