"""System events as rules see them. The database writes an event in the transaction of its move. An executor completes it: it
renders the title of the execution over the masked parameters, and opens an encrypted error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from penstock.language.terms.system_triggers import OF_EXECUTIONS
from penstock.operate import titles
from penstock.store.events import events
from penstock.store.events.events import Event
from penstock.store.session.database import Transaction

ERROR = ("type", "message")
"""The fields of an error that a payload has. An encrypted error was opened completely before."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """The execution that an event is about."""

    id: UUID
    action: str
    finished_at: datetime | None


async def complete(tx: Transaction, batch: Sequence[Event]) -> None:
    """Complete the system events of executions among these, and store them. A repeated message changes nothing."""
    payloads = {event.id: orjson.loads(event.payload) for event in batch if event.trigger in OF_EXECUTIONS}
    if not payloads:
        return
    titles_by_id = await titles.of_executions(tx, [_subject(payload) for payload in payloads.values()])
    completed = []
    for event in batch:
        if (payload := payloads.get(event.id)) is None:
            continue
        whole = _whole(payload, titles_by_id.get(UUID(payload["execution"])))
        if whole != payload:
            event.payload = orjson.dumps(whole).decode()
            completed.append(event)
    if completed:
        await events.complete(tx, completed)


def _whole(payload: dict[str, Any], title: str | None) -> dict[str, Any]:
    error = payload["error"]
    if error is not None:
        error = {name: value for name, value in error.items() if name in ERROR}
    return {**payload, "error": error, "title": payload["title"] if title is None else title}


def _subject(payload: dict[str, Any]) -> _Subject:
    ended_at = payload["ended_at"]
    return _Subject(
        UUID(payload["execution"]), payload["action"], datetime.fromisoformat(ended_at) if ended_at else None
    )
