"""The answers to a group of submissions or events: for each its id, or the error with which it was refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from penstock.errors import Conflict, DefinitionError
from penstock.store.events.events import NewEvent, StoredEvents
from penstock.store.executions.executions import Submission, Submitted


class Stale(DefinitionError):
    """The error of a submission that names a version which is no longer current."""


def of_submissions(submitted: Submitted, group: Sequence[Submission]) -> list[UUID | Exception]:
    """Return the id or the error of each submission of the group. Raises Stale if nothing was stored, because a
    version was not current."""
    if submitted.stale:
        raise Stale("a definition changed meanwhile")
    bursts = {submission.id for submission in group if submission.debounces}
    keyed = {id: winner for id, winner in submitted.conflicts.items() if id not in bursts}
    debounced = {id: winner for id, winner in submitted.conflicts.items() if id in bursts}
    winners = _winners(
        submitted.existing,
        keyed,
        "this idempotency key belongs to execution {}, which was started with other parameters",
        "Use a new key for a new request.",
    ) | _winners(
        {},
        debounced,
        "execution {} has this key or belongs to the open burst, and this start has other options",
        "Starts of one burst have the same keep, budget, bounds and timeouts. Give other starts another debounce_key, and a new "
        "request a new idempotency key.",
    )
    return [winners.get(submission.id, submission.id) for submission in group]


def of_events(stored: StoredEvents, group: Sequence[NewEvent]) -> list[UUID | Exception]:
    """Return the id or the error of each event of the group."""
    winners = _winners(
        stored.existing,
        stored.conflicts,
        "this key belongs to event {}, which has another payload",
        "Give a different event a different key.",
    )
    return [winners.get(event.id, event.id) for event in group]


def _winners(
    existing: Mapping[UUID, UUID], conflicts: Mapping[UUID, UUID], conflict: str, hint: str
) -> dict[UUID, UUID | Exception]:
    """Return, for each item with a known key, the id that has the key, or the Conflict if the contents differ."""
    refused = {id: Conflict(conflict.format(winner), hint=hint) for id, winner in conflicts.items()}
    return {**existing, **refused}


def unwrap(answer: UUID | Exception) -> UUID:
    """Return the id. Raises the error if the item was refused."""
    if isinstance(answer, Exception):
        raise answer
    return answer
