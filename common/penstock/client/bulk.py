"""The base of commands on many items. They work in batches, commit each batch by itself, and report the outcome for
each item. A command that was interrupted continues with the remaining items when it is called again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from uuid import UUID

from penstock.errors import PenstockError


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    """The outcome for one item. Either the command was carried out, and `said` describes its effect, or the item was
    left unchanged because of `error`."""

    id: UUID
    said: str | None = None
    error: PenstockError | None = None


@dataclass(slots=True)
class Part:
    """The range of items for one call of a bulk command: those after the item `before` in the list, at least `limit` of
    them, up to a whole batch.

    After that call, `next` is the `before` of the following call, or None if no items are left.
    """

    before: UUID | None = None
    limit: int | None = None
    next: UUID | None = None


@dataclass(slots=True)
class Refusal:
    """The items that were left unchanged for one reason: the error, their number, and one of them."""

    error: PenstockError
    example: UUID
    count: int = 0


@dataclass(slots=True)
class Tally:
    """The number of items for which a command was carried out, and the refusals by reason."""

    done: int = 0
    refused: dict[str, Refusal] = field(default_factory=dict)

    def add(self, outcome: BulkOutcome) -> None:
        if outcome.error is None:
            self.done += 1
            return
        reason = outcome.error.message.replace(str(outcome.id), "ID")
        self.refused.setdefault(reason, Refusal(outcome.error, outcome.id)).count += 1


async def tally(outcomes: AsyncIterator[BulkOutcome]) -> Tally:
    """Run a bulk command to its end, and return the counts of its outcomes."""
    counted = Tally()
    async for outcome in outcomes:
        counted.add(outcome)
    return counted
