"""The page of webhooks, each an address that other programs call."""

from __future__ import annotations

from dataclasses import asdict, replace
from secrets import token_hex
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from penstock.store.access import webhook_refusals, webhooks
from penstock.store.definitions import catalog
from penstock.store.session.master_keys import key_problem
from penstock_api.auth.access import READ_ALL
from penstock_api.backend import Db, Here
from penstock_api.models import webhooks as models
from penstock_api.pages.page import PageRouter, page
from penstock_api.pages.request_form import request_fields

router: APIRouter = PageRouter("webhooks")
SCHEMES = {
    "secret": "secret (a shared secret in a header)",
    "standard": "standard (Standard Webhooks)",
}
"""The names of signature schemes for people, where the value of the API is too short for one."""


@router.get("/webhooks", dependencies=[READ_ALL])
async def show(request: Request, session: Db, backend: Here, change: str = "") -> Response:
    """Show the webhooks, with a form to create one, or to `change` the one of this name."""
    rows = await webhooks.listed(session)
    changed = next((row for row in rows if row.name == change), None)
    value: dict[str, Any] = {} if changed is None else asdict(changed)
    if value.get("payload") is not None:
        value["payload"] = orjson.loads(value["payload"])
    form = [
        replace(field, choices=[(sent, SCHEMES.get(name, name)) for sent, name in field.choices])
        if field.name == "signature"
        else field
        for field in request_fields(models.PutWebhook, value)
    ]
    triggers = (await catalog.names(session, ["trigger"])).get("trigger", [])
    form = [
        replace(field, suggestions=sorted(triggers)) if field.name == "trigger" else field for field in form
    ]
    if changed is None:
        form = [replace(field, required=True) if field.name == "secret" else field for field in form]
    return page(
        request,
        "webhooks.html",
        rows=rows,
        refusals=await webhook_refusals.listed(session),
        changed=changed,
        put=form,
        has_triggers=bool(triggers),
        key_problem=key_problem(backend.settings),
        new_secret=None if changed is not None else token_hex(32),
        every=5,
    )
