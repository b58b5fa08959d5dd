"""What a group of submits or events is answered: for each the id that it has now, or why it was refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from penstock.errors import Conflict, DefinitionError
from penstock.store.database import Row
from penstock.store.executions import Submission


class Stale(DefinitionError):
    """A submit named a version that is not current any more."""


def of_submissions(rows: Sequence[Row], group: Sequence[Submission]) -> list[UUID | Exception]:
    """From what `submit_executions` said. Raises Stale, if nothing was stored for that."""
    if any(row["queue"] == "stale" for row in rows):
        raise Stale("a definition changed meanwhile")
    winners = _winners(
        rows,
        "this idempotency key belongs to execution {}, which was started with other parameters",
        "Use a new key for a new request.",
    )
    return [winners.get(s.id, s.id) for s in group]


def of_events(rows: Sequence[Row], group: Sequence[tuple[Any, ...]]) -> list[UUID | Exception]:
    """From what `store_events` said."""
    winners = _winners(
        rows,
        "this key belongs to event {}, which has another payload",
        "Give a different event a different key.",
    )
    return [winners.get(item[0], item[0]) for item in group]


def _winners(rows: Sequence[Row], conflict: str, hint: str) -> dict[UUID, UUID | Exception]:
    """By the id given: the id that its key already has, or the conflict."""
    winners: dict[UUID, UUID | Exception] = {}
    for row in rows:
        if row["queue"] == "existing":
            winners[row["ids"][0]] = row["ids"][1]
        elif row["queue"] == "conflict":
            winners[row["ids"][0]] = Conflict(conflict.format(row["ids"][1]), hint=hint)
    return winners


def unwrap(answer: UUID | Exception) -> UUID:
    """The id. Raises what it was refused for."""
    if isinstance(answer, Exception):
        raise answer
    return answer
