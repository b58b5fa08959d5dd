"""The routes of dead letters: messages that could not be handled."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Query

from penstock.client import dead_letters
from penstock.store.outbox.dead_letters import DeadLetter, DeadLetterSummary, LetterFilter
from penstock_api.auth.access import OPERATE_ALL, READ_ALL
from penstock_api.backend import Db, Here, Lists
from penstock_api.models import operations as models
from penstock_api.models.model import Page
from penstock_api.routes.router import Router

router = Router("dead letters")


@router.get("/dead-letters", dependencies=[READ_ALL])
async def list_dead_letters(
    session: Lists,
    queue: Annotated[str | None, Query(description="Only letters of this queue.")] = None,
    reason: Annotated[str | None, Query(description="Only letters with this text in their reason.")] = None,
    before: Annotated[UUID | None, Query(description="The value of `next` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="The maximum number to return.")] = 50,
) -> Page[DeadLetterSummary]:
    """List dead letters with their reasons, newest first. One that was dead-lettered again counts as new."""
    letter_filter = LetterFilter(queue=queue, reason=reason)
    rows = await dead_letters.newest(session, letter_filter, limit=limit, before=before)
    last = str(rows[-1].id) if len(rows) == limit else None
    return Page(items=rows, next=last)


@router.get("/dead-letters/{id}", dependencies=[READ_ALL])
async def show(id: UUID, session: Db) -> DeadLetter:
    """Show a dead letter, with its headers and its body."""
    return await dead_letters.shown(session, id)


@router.post("/dead-letters/{id}/replay", dependencies=[OPERATE_ALL])
async def replay(id: UUID, backend: Here, session: Db) -> models.ReplayedLetter:
    """Return a dead letter to its queue, once the cause is fixed."""
    await dead_letters.find(session, id)
    outcomes = [letter async for letter in dead_letters.replay(backend.client, LetterFilter([id]))]
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    return models.ReplayedLetter(
        id=id, became=outcomes[0].said or "" if outcomes else "another caller replayed it"
    )


@router.delete("/dead-letters/{id}", status_code=204, dependencies=[OPERATE_ALL])
async def drop(id: UUID, session: Db) -> None:
    """Delete a dead letter."""
    await dead_letters.find(session, id)
    await dead_letters.drop(session, LetterFilter([id]))
