"""The routes of inquiries."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Query

from penstock.client import inquiries
from penstock.store.executions.inquiries import Inquiry
from penstock_api.auth.access import ANSWER, READ, Asked, ExecutionId, Tenants
from penstock_api.backend import Db, Here
from penstock_api.models import operations as models
from penstock_api.routes.router import Router

router = Router("inquiries")


@router.get("/inquiries", dependencies=[READ])
async def list_inquiries(
    session: Db,
    tenants: Tenants,
    answered: Annotated[bool, Query(description="Include answered inquiries.")] = False,
    assignee: Annotated[str | None, Query(description="Only inquiries for this assignee.")] = None,
    execution: Annotated[UUID | None, Query(description="Only the inquiry of this execution.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[Inquiry]:
    """List the inquiries of executions, newest first."""
    return await inquiries.listed(
        session, answered=answered, assignee=assignee, execution=execution, limit=limit, tenants=tenants
    )


@router.post("/inquiries/{id}/answer", status_code=204, dependencies=[ANSWER])
async def answer(id: ExecutionId, body: models.InquiryAnswer, backend: Here, caller: Asked) -> None:
    """Answer an inquiry. The answer becomes the execution's result, or the execution continues with it."""
    await backend.client.answer(id, body.response, by=caller.name, asked=body.asked)
