"""The base of commands on many things at once: they work in batches, each of which is committed by itself, and report
the outcome of each thing. Broken off and begun again, they go on with what is left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from uuid import UUID

from penstock.errors import PenstockError


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for one thing: the command was carried out, and `said` reports its effect, or it was left alone
    because of `error`."""

    id: UUID
    said: str | None = None
    error: PenstockError | None = None


@dataclass(slots=True)
class Part:
    """Some of many: those that come after the one of `before` in the list, and `most` of them, or some more to fill a batch.
    `next`: what `before` is of the rest, once it is done; None where nothing is left."""

    before: UUID | None = None
    most: int | None = None
    next: UUID | None = None


@dataclass(slots=True)
class Refusal:
    """The reason for which some things were left alone: their number, and one of them."""

    error: PenstockError
    example: UUID
    count: int = 0


@dataclass(slots=True)
class Tally:
    """The number of things that a command was carried out on, and of those left alone, by the reason."""

    done: int = 0
    refused: dict[str, Refusal] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        if outcome.error is None:
            self.done += 1
            return
        reason = outcome.error.message.replace(str(outcome.id), "ID")
        self.refused.setdefault(reason, Refusal(outcome.error, outcome.id)).count += 1


async def tally(outcomes: AsyncIterator[Outcome]) -> Tally:
    """Let a command on many come to its end, and count."""
    counted = Tally()
    async for outcome in outcomes:
        counted.add(outcome)
    return counted
