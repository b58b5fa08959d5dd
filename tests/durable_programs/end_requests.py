"""Requests that a run ends: a cancellation may come while a step runs, between two turns, while the run waits, or while it is
undone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.durable_programs.statements import DAY

APART = 1e-3
"""Seconds between two instants that a request may come between. Turns of a plain play are far shorter."""
TURN = 1e-8
"""Seconds of a turn of a plain play."""
OFFSETS = (-1.3, -0.3, *(turns + part for turns in range(20) for part in (0.3, 0.7)))
"""Turns between a request that comes with a commit, and what a plain play does at this instant. Each call that follows another
one takes a plain play another turn."""


@dataclass(frozen=True)
class EndRequest:
    """A request that comes at an instant, in seconds from the beginning, or so many turns of the loop after the nth commit.
    `again`: seconds until the end is requested once more."""

    instant: float | None = None
    commit: int = 0
    turns: int = 0
    again: float | None = None


@dataclass(frozen=True)
class EndPoint:
    """A request for any run: it comes in the nth gap between two instants at which something happens, or after the nth
    commit."""

    nth: int = 0
    share: float = 0.5
    """The part of the gap that is over."""
    turns: int | None = None
    """Turns of the loop after a commit; None: in a gap."""
    again: float | None = None

    def of(self, instants: Sequence[float], commits: int) -> EndRequest:
        """Return the request for a run in which something happens at these instants, and with so many commits."""
        if self.turns is not None and commits:
            return EndRequest(commit=self.nth % commits, turns=self.turns, again=self.again)
        known = sorted({0.0, *instants})
        gaps = [pair for pair in pairwise([*known, known[-1] + DAY]) if pair[1] - pair[0] > APART]
        begin, end = gaps[self.nth % len(gaps)]
        instant = round(begin + self.share * (end - begin), 6)  # what a datetime keeps
        return EndRequest(instant, again=self.again)


@dataclass(frozen=True)
class RequestedEnd:
    """The end that a run was asked for: at this instant, and without grace so many seconds later."""

    instant: float
    at_commit: bool = False
    again: float | None = None

    def near(self) -> Iterator[RequestedEnd]:
        """Yield the same end, told before and after what happens at the same instant."""
        yield self
        if self.at_commit:
            for offset in OFFSETS:
                yield RequestedEnd(self.instant + offset * TURN, True, self.again)
