"""Messages that a transaction has staged in the outbox, which are published once it has committed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID


@dataclass(slots=True)
class StagedMessage:
    """An envelope: a row of the outbox, the queue that it is for, and the ids in it."""

    outbox_id: int
    queue: str
    ids: list[UUID]


def staged_in(rows: Iterable[Any]) -> list[StagedMessage]:
    """What a statement that stages says in its column `messages`."""
    return [StagedMessage(*message) for row in rows for message in row["messages"]]
