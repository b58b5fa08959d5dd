"""Inquiries: the list, the permission to answer, and the answer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from penstock.errors import Conflict, InvalidInput, NotAllowed, NotFound
from penstock.language.schemas import mask
from penstock.language.schemas.question_schema import checked_answer
from penstock.language.terms.ids import EXECUTION_CALLER
from penstock.store.executions import inquiries
from penstock.store.executions.inquiries import Inquiry
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction
from penstock.store.session.staged_messages import StagedMessage


async def listed(
    session: Session,
    *,
    answered: bool = False,
    assignee: str | None = None,
    execution: UUID | None = None,
    limit: int = 100,
    tenants: Collection[str] | None = None,
) -> list[Inquiry]:
    """Return at most `limit` open inquiries, newest first, or that of one execution. With `answered` also return the ended ones.
    Secrets in answers and defaults are masked. Each has the run that asks, with its title and labels."""
    from penstock.operate import titles  # slow to import

    rows = await inquiries.newest(
        session, answered=answered, assignee=assignee, limit=limit, tenants=tenants, execution=execution
    )
    runs = await inquiries.runs(session, [row.execution_id for row in rows]) if rows else {}
    title_texts = await titles.of_executions(session, list(runs.values()))
    for run in runs.values():
        run.title = title_texts.get(run.id)
    return [replace(with_masked_answer(row), run=runs.get(row.execution_id)) for row in rows]


def may_answer(assignee: str | None, by: str) -> bool:
    """Return whether `by` may answer the inquiries of `assignee`. A person with the user name `ada` is `user:ada`."""
    return assignee is None or by in (assignee, f"user:{assignee}")


def with_masked_answer(inquiry: Inquiry) -> Inquiry:
    """Return the inquiry with the secrets in its answer and in its default masked."""
    if inquiry.schema is None:
        return inquiry
    schema = orjson.loads(inquiry.schema)
    return replace(
        inquiry, response=_masked(inquiry.response, schema), default=_masked(inquiry.default, schema)
    )


def _masked(answer: str | None, schema: Any) -> str | None:
    """Return an answer, which is stored as JSON, with its secrets masked."""
    return None if answer is None else orjson.dumps(mask(orjson.loads(answer), schema)).decode()


async def answer(
    session: Session, execution: UUID, response: object, by: str, asked_at: datetime | None = None
) -> list[StagedMessage]:
    """Answer the inquiry that was created at `asked_at`, by default the open one. Return the staged messages.

    Raises NotFound if the execution has asked nothing, and InvalidInput for a response that does not fit its schema.
    Raises NotAllowed for a person that is not its assignee. Raises Conflict if it was answered, timed out or was
    cancelled before, or if another one is open by now.
    """

    async def answer_open(tx: Transaction) -> None:
        nonlocal asked_at
        inquiry = await _asking(tx, execution)
        asked_at = asked_at or inquiry.created_at  # a retry must answer the inquiry of the first try
        await _answer(tx, inquiry, asked_at, response, by)

    tx, _ = await committed_once(session, answer_open)
    return tx.staged


async def _asking(tx: Transaction, execution: UUID) -> Inquiry:
    inquiry = await inquiries.find_locked(tx, execution)
    if inquiry is None:
        tasks = [
            f"Its task {task} asks: penstock answer {id} ANSWER."
            for id, task in (await inquiries.of_tasks(tx, execution)).items()
        ]
        raise NotFound(
            f"execution {execution} has not asked anything",
            hint=" ".join(tasks) if tasks else "`penstock inquiries` lists open inquiries.",
        )
    return inquiry


async def _answer(tx: Transaction, inquiry: Inquiry, asked_at: datetime, response: object, by: str) -> None:
    if inquiry.created_at != asked_at:
        raise Conflict(
            "this question was answered, and another one is open now",
            hint=f"It asks: {inquiry.prompt}" if inquiry.status == "created" else None,
        )
    if not may_answer(inquiry.assignee, by):
        raise NotAllowed(
            f"only {inquiry.assignee} may answer this", hint=f"Answer as {inquiry.assignee} (--by)."
        )
    if by == f"{EXECUTION_CALLER}{inquiry.execution_id}":
        raise InvalidInput("an execution may not answer its own inquiry")
    document = orjson.loads(inquiry.schema) if inquiry.schema else None
    encoded = checked_answer(response, document, cap=tx.settings.payload_cap)
    if not await inquiries.answer(tx, inquiry.execution_id, encoded.decode(), by):
        raise Conflict(
            f"the inquiry is {inquiry.status}"
            + (f" (by {inquiry.responder})" if inquiry.responder else " or its execution has ended")
        )
