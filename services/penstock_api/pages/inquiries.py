"""Inquiries: questions that executions wait for the answers of, each with its form."""

from __future__ import annotations

from functools import partial

import orjson
from fastapi import APIRouter, Request, Response

from penstock.client import inquiries
from penstock.client.inquiries import may_answer
from penstock.operate.access import ANSWER
from penstock_api.access import READ, Asked, Tenants
from penstock_api.backend import Db
from penstock_api.pages.page import PageRouter, page
from penstock_api.pages.schema_form import fields

router: APIRouter = PageRouter("inquiries")

MOST = 100


@router.get("/inquiries", dependencies=[READ])
async def show(
    request: Request,
    session: Db,
    caller: Asked,
    tenants: Tenants,
    answered: bool = False,
    assignee: str = "",
) -> Response:
    """Show the open inquiries, and on request the answered ones."""
    find = partial(inquiries.listed, session, answered=answered, assignee=assignee or None, limit=MOST)
    found = theirs = await find(tenants=tenants)
    if (own := caller.within(ANSWER).tenants) != caller.tenants:
        theirs = await find(tenants=own)  # of some of what is seen, that is
    open_ = [one for one in found if one.status == "created"]
    mine = {one.execution_id for one in theirs if may_answer(one.assignee, caller.name)}
    forms = {
        one.execution_id: fields(None if one.schema is None else orjson.loads(one.schema), "response")
        for one in open_
        if one.execution_id in mine
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
