"""Questions to humans: who may answer, and with what."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

import orjson

from penstock.errors import Conflict, InvalidInput, NotAllowed, NotFound
from penstock.language.schemas import Schema, mask
from penstock.store import inquiries
from penstock.store.database import Session, Transaction, backoff
from penstock.store.inquiries import Inquiry
from penstock.store.staged_messages import StagedMessage


async def listed(
    session: Session,
    *,
    answered: bool = False,
    assignee: str | None = None,
    limit: int = 100,
    tenants: Collection[str] | None = None,
) -> list[Inquiry]:
    """Open inquiries, newest first; with `answered` the others too, secrets of their answers masked."""
    rows = await inquiries.newest(session, answered=answered, assignee=assignee, limit=limit, tenants=tenants)
    return [replace(row, response=_masked(row)) for row in rows]


def may_answer(assignee: str | None, by: str) -> bool:
    """Whether this one may answer what `assignee` is asked; a person who has logged in as `ada` is `user:ada`."""
    return assignee is None or by in (assignee, f"user:{assignee}")


def _masked(row: Inquiry) -> str | None:
    if row.response is None or row.schema is None:
        return row.response
    return orjson.dumps(mask(orjson.loads(row.response), orjson.loads(row.schema))).decode()


async def answer(session: Session, execution: UUID, response: object, by: str) -> list[StagedMessage]:
    """Answer an inquiry; returns what was staged. Raises NotFound, InvalidInput for a response that does not fit its
    schema, NotAllowed for somebody whom it does not ask, Conflict if it was answered, ran out of time or was cancelled before."""
    staged: list[StagedMessage] = []
    tried = False
    async for attempt in backoff(deadline=30):
        with attempt:
            try:
                async with session.transaction() as tx:
                    await _answer(tx, execution, response, by)
                staged = tx.staged
            except Conflict:
                # An earlier try of this very call may have committed, and only its answer was lost.
                if not tried or not await _is_ours(session, execution, response, by):
                    raise
            finally:
                tried = True
    return staged


async def _answer(tx: Transaction, execution: UUID, response: object, by: str) -> None:
    inquiry = await inquiries.find(tx, execution)
    if inquiry is None:
        raise NotFound(
            f"execution {execution} has not asked anything", hint="`penstock inquiries` lists open inquiries."
        )
    if not may_answer(inquiry.assignee, by):
        raise NotAllowed(
            f"only {inquiry.assignee} may answer this", hint=f"Answer as {inquiry.assignee} (--by)."
        )
    if by == f"execution:{execution}":
        raise InvalidInput("an execution may not answer its own inquiry")
    encoded = Schema(orjson.loads(inquiry.schema) if inquiry.schema else None).check(
        response, what="response"
    )
    if not await inquiries.answer(tx, execution, encoded.decode(), by):
        # Somebody else may have answered between the two statements, or its execution may have ended.
        inquiry = await inquiries.find(tx, execution) or inquiry
        raise Conflict(
            f"the inquiry is {inquiry.status}"
            + (f" (by {inquiry.responder})" if inquiry.responder else " or its execution has ended")
        )


async def _is_ours(session: Session, execution: UUID, response: object, by: str) -> bool:
    inquiry = await inquiries.find(session, execution)
    if inquiry is None:
        return False
    return bool(inquiry.responder == by and orjson.loads(inquiry.response or "null") == response)
