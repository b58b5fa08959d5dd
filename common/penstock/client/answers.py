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


def of_submissions(row: Row, group: Sequence[Submission]) -> list[UUID | Exception]:
    """From what `submit_executions` said. Raises Stale, if nothing was stored for that."""
    if row["stale"]:
        raise Stale("a definition changed meanwhile")
    winners = _winners(
        row,
        "this idempotency key belongs to execution {}, which was started with other parameters",
        "Use a new key for a new request.",
    )
    return [winners.get(s.id, s.id) for s in group]


def of_events(row: Row, group: Sequence[tuple[Any, ...]]) -> list[UUID | Exception]:
    """From what `store_events` said."""
    winners = _winners(
        row,
        "this key belongs to event {}, which has another payload",
        "Give a different event a different key.",
    )
    return [winners.get(item[0], item[0]) for item in group]


def _winners(row: Row, conflict: str, hint: str) -> dict[UUID, UUID | Exception]:
    """By the id given: the id that its key already has, or the conflict."""
    winners: dict[UUID, UUID | Exception] = {one["given"]: one["kept"] for one in row["existing"]}
    for one in row["conflicts"]:
        winners[one["given"]] = Conflict(conflict.format(one["kept"]), hint=hint)
    return winners


def unwrap(answer: UUID | Exception) -> UUID:
    """The id. Raises what it was refused for."""
    if isinstance(answer, Exception):
        raise answer
    return answer
