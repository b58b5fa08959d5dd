"""Moves of executions as they come, for those who watch. Read from the history, so that nobody who moves one does anything
more for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.store.database import Session
from penstock.store.rows import rows_as


@dataclass(frozen=True, slots=True)
class Change:
    """An execution has moved from one status (None: it is new) to another."""

    id: UUID
    at: datetime
    old: str | None
    new: str
    attempt: int
    reason: str | None
    namespace: str
    action: str
    parent: UUID | None
    task: str | None

    @property
    def tenant(self) -> str:
        return self.namespace.partition("::")[0]


AFTER = "select id, at, old, new, attempt, reason, namespace, action, parent, task from moves_after($1, $2)"


async def after(session: Session, at: datetime, limit: int) -> list[Change]:
    """The next `limit` moves after that instant, oldest first; those of executions that are archived are left out."""
    return rows_as(Change, await session.fetch(AFTER, at, limit))
