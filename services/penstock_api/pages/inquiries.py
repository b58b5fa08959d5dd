"""The page of inquiries, each with a form for its answer."""

from __future__ import annotations

from functools import partial
from typing import Annotated
from uuid import UUID

import orjson
from fastapi import APIRouter, Query, Request, Response

from penstock.client import inquiries
from penstock.client.inquiries import may_answer
from penstock.operate.access import ANSWER
from penstock.operate.why.workflow import ANSWER_WHILE_PAUSED
from penstock_api.auth.access import READ, Asked, Tenants
from penstock_api.backend import Db
from penstock_api.pages.page import PageRouter, page
from penstock_api.pages.schema_form import fields

router: APIRouter = PageRouter("inquiries")

USUAL = 100
MOST = 1000
"""The number of inquiries on the page, and the maximum that it shows on request. The newest are shown."""


@router.get("/inquiries", dependencies=[READ])
async def show(
    request: Request,
    session: Db,
    caller: Asked,
    tenants: Tenants,
    answered: bool = False,
    assignee: str = "",
    done: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = USUAL,
) -> Response:
    """Show the open inquiries, and on request the answered ones. `done` is the execution that the caller has
    just answered."""
    find = partial(inquiries.listed, session, answered=answered, assignee=assignee or None, limit=limit)
    visible = theirs = await find(tenants=tenants)
    if (own := caller.within(ANSWER).tenants) != caller.tenants:
        theirs = await find(tenants=own)  # the caller may answer for only some of the tenants that it sees
    open_ = [inquiry for inquiry in visible if inquiry.status == "created"]
    mine = {inquiry.execution_id for inquiry in theirs if may_answer(inquiry.assignee, caller.name)}
    forms = {
        inquiry.execution_id: fields(
            None if inquiry.schema is None else orjson.loads(inquiry.schema), "response"
        )
        for inquiry in open_
        if inquiry.execution_id in mine
    }
    past = [inquiry for inquiry in visible if inquiry.status != "created"]
    return page(
        request,
        "inquiries.html",
        rows=open_,
        past=past,
        forms=forms,
        of_others={row.execution_id for row in open_ if not may_answer(row.assignee, caller.name)},
        answered=answered,
        assignee=assignee,
        done=done,
        answer_while_paused=ANSWER_WHILE_PAUSED,
        limit=limit if len(visible) == limit else None,
        most=MOST,
        every=5,
    )
