"""Messages that a transaction has staged in the outbox, which are published once it has committed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID


@dataclass(slots=True)
class StagedMessage:
    """An envelope: the id of its row in the outbox, its queue, and its ids. A hint to waiting processes has no row
    (0)."""

    outbox_id: int
    queue: str
    ids: list[UUID]


def staged_in(messages: Iterable[Iterable[Any]]) -> list[StagedMessage]:
    """Parse a value of the database type `message[]`."""
    return [StagedMessage(*message) for message in messages]
