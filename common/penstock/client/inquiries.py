"""Questions to humans: who may answer, and with what."""

from __future__ import annotations

from uuid import UUID

import orjson

from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.schemas import Schema
from penstock.store.database import Row, Session, Transaction, backoff
from penstock.store.staged_messages import StagedMessage

LIST = """
select execution_id, status, prompt, assignee, schema::text as schema, due_at, created_at, answered_at, responder,
    response::text as response
from inquiry where ($1 or status = 'created') and ($2::text is null or assignee = $2)
order by created_at desc limit $3
"""
FIND = """
select status, prompt, assignee, schema::text as schema, responder, response::text as response from inquiry
where execution_id = $1
"""
ANSWER = "select messages, moved from answer_inquiry($1, $2, $3)"


async def listed(
    session: Session, *, answered: bool = False, assignee: str | None = None, limit: int = 100
) -> list[Row]:
    """Open inquiries, newest first; with `answered` the others too."""
    return await session.fetch(LIST, answered, assignee, limit)


async def answer(session: Session, execution: UUID, response: object, by: str) -> list[StagedMessage]:
    """Answer an inquiry; returns what was staged. Raises NotFound, InvalidInput for a response that does not fit its
    schema or for somebody whom it does not ask, Conflict if it was answered, ran out of time or was cancelled before."""
    staged: list[StagedMessage] = []
    tried = False
    async for attempt in backoff(deadline=30):
        with attempt:
            try:
                async with session.transaction() as tx:
                    await _answer(tx, execution, response, by)
                staged = tx.staged
            except Conflict:
                # A commit whose outcome is unknown may have been ours.
                if not tried or not await _is_ours(session, execution, response, by):
                    raise
            finally:
                tried = True
    return staged


async def _answer(tx: Transaction, execution: UUID, response: object, by: str) -> None:
    rows = await tx.fetch(FIND, execution)
    if not rows:
        raise NotFound(
            f"execution {execution} has not asked anything", hint="`penstock inquiries` lists open inquiries."
        )
    inquiry = rows[0]
    if inquiry["assignee"] is not None and inquiry["assignee"] != by:
        raise InvalidInput(
            f"only {inquiry['assignee']} may answer this", hint=f"Answer as {inquiry['assignee']} (--by)."
        )
    if by == f"execution:{execution}":
        raise InvalidInput("an execution may not answer its own inquiry")
    encoded = Schema(orjson.loads(inquiry["schema"]) if inquiry["schema"] else None).check(
        response, what="response"
    )
    [answered] = await tx.stage(ANSWER, execution, encoded.decode(), by)
    if not answered["moved"]:
        [inquiry] = await tx.fetch(FIND, execution)  # as whoever was first has left it
        raise Conflict(
            f"the inquiry is {inquiry['status']}"
            + (f" (by {inquiry['responder']})" if inquiry["responder"] else " or its execution has ended")
        )


async def _is_ours(session: Session, execution: UUID, response: object, by: str) -> bool:
    [inquiry] = await session.fetch(FIND, execution)
    return bool(inquiry["responder"] == by and orjson.loads(inquiry["response"] or "null") == response)
