"""The pages of dead letters (messages that could not be handled), where they can be replayed or deleted by reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from penstock.client import dead_letters
from penstock.client.bulk import Tally, tally
from penstock.errors import InvalidInput
from penstock.run.cut_texts import cut_end
from penstock.store.outbox.dead_letters import LetterFilter
from penstock.store.session.database import Session
from penstock_api.auth.access import OPERATE_ALL, READ_ALL
from penstock_api.backend import Db, Here, Lists
from penstock_api.pages.page import PageRouter, form_of, page

router: APIRouter = PageRouter("dead letters")

PAGE = 50
NAMES = ("queue", "reason")
DOES = {"replay": "Replay", "drop": "Delete"}
EFFECTS = {"replay": "replayed", "drop": "deleted"}


@router.get("/dead-letters", dependencies=[READ_ALL])
async def show_all(
    request: Request,
    session: Lists,
    queue: str = "",
    reason: str = "",
    before: Annotated[UUID | None, Query()] = None,
) -> Response:
    """Show the number of dead letters by reason, and the newest ones."""
    filters = {name: value for name, value in (("queue", queue), ("reason", reason)) if value}
    letter_filter = LetterFilter(queue=queue or None, reason=reason or None)
    rows = await dead_letters.newest(session, letter_filter, limit=PAGE + 1, before=before)
    return page(
        request,
        "dead_letters.html",
        counts=await dead_letters.counts(session, LetterFilter()),
        rows=rows[:PAGE],
        after=str(rows[PAGE - 1].id) if len(rows) > PAGE else None,
        asked=filters,
        before=before,
        does=DOES,
        every=None if before else 5,
    )


@router.get("/dead-letters/many", dependencies=[OPERATE_ALL])
async def ask_many(request: Request, backend: Here, session: Db) -> Response:
    """Show the number of dead letters that would be replayed or deleted."""
    return await _many(request, backend, session, dict(request.query_params), sure=False)


@router.post("/dead-letters/many", dependencies=[OPERATE_ALL])
async def change_many(request: Request, backend: Here, session: Db) -> Response:
    """Replay or delete the selected dead letters."""
    return await _many(request, backend, session, await form_of(request), sure=True)


@router.get("/dead-letters/{id}", dependencies=[READ_ALL])
async def show(id: UUID, request: Request, session: Db) -> Response:
    """Show a dead letter, with its headers and its body."""
    return page(request, "dead_letter.html", letter=await dead_letters.shown(session, id))


async def _many(
    request: Request, backend: Here, session: Session, form: Mapping[str, str], *, sure: bool
) -> Response:
    filters = {name: form[name] for name in NAMES if form.get(name)}
    does = form.get("does", "")
    if does not in DOES:
        raise InvalidInput(
            f"there is no operation {cut_end(does, 50)!r} on a dead letter",
            hint="Open the list of dead letters, and use its buttons.",
        )
    letter_filter = LetterFilter(queue=filters.get("queue"), reason=filters.get("reason"))
    return page(
        request,
        "many.html",
        subject="dead letters",
        back="/dead-letters",
        asked=filters,
        does=does,
        verb=DOES[does],
        effect=EFFECTS[does],
        sure=sure,
        reason=None,
        done=await _done(backend, session, letter_filter, does, dry_run=not sure),
    )


async def _done(
    backend: Here, session: Session, letter_filter: LetterFilter, does: str, *, dry_run: bool
) -> Tally:
    if does == "drop":
        return Tally(await dead_letters.drop(session, letter_filter, dry_run=dry_run))
    return await tally(dead_letters.replay(backend.client, letter_filter, dry_run=dry_run))
