"""System events as rules see them. The database writes an event in the transaction of its move, and an executor adds the title
of the execution: its template is rendered over the masked parameters."""

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


@dataclass(frozen=True, slots=True)
class _Subject:
    """The execution that an event is about."""

    id: UUID
    action: str
    finished_at: datetime | None


async def add_titles(tx: Transaction, batch: Sequence[Event]) -> None:
    """Add the titles of executions to the system events among these, and store them. A repeated message adds the same."""
    payloads = {event.id: orjson.loads(event.payload) for event in batch if event.trigger in OF_EXECUTIONS}
    if not payloads:
        return
    titles_by_id = await titles.of_executions(tx, [_subject(payload) for payload in payloads.values()])
    completed = []
    for event in batch:
        title = titles_by_id.get(UUID(payloads[event.id]["execution"])) if event.id in payloads else None
        if title is not None and payloads[event.id]["title"] != title:
            event.payload = orjson.dumps({**payloads[event.id], "title": title}).decode()
            completed.append(event)
    if completed:
        await events.complete(tx, completed)


def _subject(payload: dict[str, Any]) -> _Subject:
    ended_at = payload["ended_at"]
    return _Subject(
        UUID(payload["execution"]), payload["action"], datetime.fromisoformat(ended_at) if ended_at else None
    )
