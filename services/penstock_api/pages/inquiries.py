"""Inquiries: questions that executions wait for the answers of, each with its form."""

from __future__ import annotations

import orjson
from fastapi import APIRouter, Request, Response

from penstock.client import inquiries
from penstock_api.access import READ, Tenants
from penstock_api.backend import Db
from penstock_api.pages.page import PageRouter, page
from penstock_api.pages.schema_form import fields

router: APIRouter = PageRouter("inquiries")

MOST = 100


@router.get("/inquiries", dependencies=[READ])
async def show(
    request: Request, session: Db, tenants: Tenants, answered: bool = False, assignee: str = ""
) -> Response:
    """Those that are open; or the answered ones, too."""
    found = await inquiries.listed(
        session, answered=answered, assignee=assignee or None, limit=MOST, tenants=tenants
    )
    open_ = [one for one in found if one.status == "created"]
    forms = {
        one.execution_id: fields(None if one.schema is None else orjson.loads(one.schema), "response")
        for one in open_
    }
    past = [one for one in found if one.status != "created"]
    return page(
        request,
        "inquiries.html",
        rows=open_,
        past=past,
        forms=forms,
        answered=answered,
        assignee=assignee,
        every=5,
    )
