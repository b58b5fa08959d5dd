"""Requests that a run ends: a cancellation or a timeout may come while a step runs, between two turns, while an attempt has
failed, while the run waits, or while it is undone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from tests.durable_programs.absences import MOMENT, NEAR, Absences, turns_near
from tests.durable_programs.statements import DAY

APART = 1e-3
"""Seconds between two instants that a request may come between. Turns of a plain play are far shorter."""
Status = Literal["cancelled", "timeout"]
Moment = Literal["gap", "pause", "undo", "commit", "failure"]
"""A moment at which the end of a run is requested: in a gap between two instants at which something happens, in such a gap
while an attempt has failed and is to be tried again, in one while the run is undone, some turns of the loop after a commit, or
so many turns after an attempt has failed. A run that has no such moment is asked in a gap."""


@dataclass(frozen=True)
class EndRequest:
    """A request that comes at an instant, in seconds from the beginning. Or it comes so many turns of the loop after the nth
    commit, or after the nth failure of an attempt. `again`: seconds until the end is requested once more."""

    instant: float | None = None
    commit: int | None = None
    turns: int = 0
    again: float | None = None
    failure: int | None = None
    ends_as: Status = "cancelled"


@dataclass(frozen=True)
class Moments:
    """The moments of a run at which its end can be requested."""

    instants: Sequence[float]
    """The instants at which something happens."""
    commits: int = 0
    pauses: Sequence[tuple[float, float]] = ()
    """When each attempt failed that is tried again, and when the next one begins."""
    undone: Sequence[tuple[float, float]] = ()
    """When each compensation began and ended."""
    gaps: list[tuple[float, float]] = field(init=False)

    def __post_init__(self) -> None:
        known = sorted({0.0, *self.instants, *(instant for pause in self.pauses for instant in pause)})
        gaps = [pair for pair in pairwise([*known, known[-1] + DAY]) if pair[1] - pair[0] > APART]
        object.__setattr__(self, "gaps", gaps)

    def gaps_in(self, spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        """Return the gaps that lie in one of these spans."""
        return [gap for gap in self.gaps if any(begin <= gap[0] and gap[1] <= end for begin, end in spans)]


@dataclass(frozen=True)
class EndPoint:
    """A request for any run, at the nth of its moments of a kind."""

    at: Moment = "gap"
    nth: int = 0
    share: float = 0.5
    """The part of the gap that is over."""
    turns: int = 0
    again: float | None = None
    ends_as: Status = "cancelled"

    def of(self, moments: Moments) -> EndRequest:
        """Return the request for a run with these moments."""
        if self.at == "commit" and moments.commits:
            commit = self.nth % moments.commits
            return EndRequest(commit=commit, turns=self.turns, again=self.again, ends_as=self.ends_as)
        if self.at == "failure" and moments.pauses:
            failure = self.nth % len(moments.pauses)
            return EndRequest(failure=failure, turns=self.turns, again=self.again, ends_as=self.ends_as)
        spans = {"pause": moments.pauses, "undo": moments.undone}.get(self.at, ())
        gaps = moments.gaps_in(spans) or moments.gaps
        begin, end = gaps[self.nth % len(gaps)]
        instant = round(begin + self.share * (end - begin), 6)  # what a datetime keeps
        return EndRequest(instant, again=self.again, ends_as=self.ends_as)


class LostEnd(NamedTuple):
    """A crash that lost which results were told to a run before its requested end. The next attempt is told the end first."""

    since: float
    """When the last commit was before the crash: what was told after it is lost."""
    crashed: float


@dataclass(frozen=True)
class RequestedEnd:
    """The end that a run was asked for: at this instant, and without grace so many seconds later."""

    instant: float
    at_turn: bool = False
    """The request came some turns of the loop after another thing that happened at this instant."""
    again: float | None = None
    ends_as: Status = "cancelled"
    before_failure: bool = False
    """An attempt that fails in the same turn fails after the request."""
    told: float | None = None
    """The instant at which the request is told, where a plain play does earlier than the run what was over before a late attempt
    began, or what a crash lost. None: the request is told like all else that comes at its instant."""

    def later(self) -> RequestedEnd:
        """Return the same end after all that happens at its instant."""
        return replace(self, instant=self.instant + NEAR)

    def between(self, ticks: Sequence[float], absences: Absences) -> Iterator[RequestedEnd]:
        """Yield the same end, requested before and after each of the turns of a plain play that are near. A run wakes up at whole
        microseconds. So the play may be ahead of it by more than a turn."""
        for instant in turns_near(ticks, self.instant - NEAR, self.instant + NEAR):
            near_end = replace(self, instant=instant)
            yield near_end
            yield replace(near_end, before_failure=True)
        for _, end in absences.spans:
            if abs(self.instant - end) < NEAR:
                for told in turns_near(ticks, end - MOMENT, end):
                    yield replace(self, told=told)
                    yield replace(self, told=told, before_failure=True)

    def before_lost(self, ticks: Sequence[float], lost: LostEnd) -> Iterator[RequestedEnd]:
        """Yield the same end, told after each of the turns of a plain play that are near the last commit before a crash."""
        for told in turns_near(ticks, lost.since - NEAR, lost.since + NEAR):
            yield replace(self, told=told)
            yield replace(self, told=told, before_failure=True)
