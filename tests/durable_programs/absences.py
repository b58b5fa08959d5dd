"""The spans in which no worker had time for a run: what the run waited for was over long before its next attempt began."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

NEAR = 1e-5
"""Seconds in which a plain play does what a run does at one instant: each call that follows another one takes it another turn."""
MOST_NEAR = 80
"""Turns of a plain play, between which something is tried that came with a turn of the run."""
MOMENT = 0.5
"""Seconds before the next attempt, within which a plain play tells all that was over: two instants of an absence that are a
second apart stay further apart than a turn."""
FIRST = 1e-6
"""Seconds of this moment in which a play tells only a cancellation: what is over a few hundredths of a second after the absence
began would be told at the same instant, since the time of many days has no finer parts."""


@dataclass
class Absences:
    """The absences of a run, each with its begin and its end in seconds from the beginning of the run."""

    spans: list[tuple[float, float]] = field(default_factory=list)

    def begun_earlier(self, seconds: float) -> Absences:
        """Return the same absences, each begun so many seconds earlier: what happens while a run suspends itself may be told
        before the absence or after it."""
        return Absences([(begin - seconds, end) for begin, end in self.spans])

    def begun_between(self, ticks: Sequence[float], seconds: float) -> Iterator[Absences]:
        """Yield the same absences, one of them begun so many seconds earlier, after each turn of a plain play that is near
        that instant. A run that suspends itself may have been told some of what happened at one instant, and not the rest."""
        for number, (begin, end) in enumerate(self.spans):
            suspended = begin - seconds
            for after in turns_near(ticks, suspended - NEAR, suspended + NEAR):
                yield Absences([*self.spans[:number], (after, end), *self.spans[number + 1 :]])

    def told_at(self, instant: float) -> float:
        """Return when the result of this instant is told: right before the next attempt begins, in the order of instants."""
        for begin, end in self.spans:
            if begin < instant < end:
                return end - (MOMENT - FIRST) * (end - instant) / (end - begin)
        return instant

    def heard_at(self, instant: float) -> float:
        """Return when a signal that was sent before its call is told to the call of this instant. A run that only waits suspends
        itself without a look for signals: it hears them in the next attempt."""
        asleep = any(begin < instant < end - MOMENT for begin, end in self.spans)
        return self.told_at(instant) if asleep else instant

    def ends_at(self, instant: float) -> bool:
        """Return whether an attempt begins at this instant after an absence."""
        return any(abs(end - instant) < MOMENT for _, end in self.spans)

    def cancelled_at(self, instant: float) -> float:
        """Return when a cancellation of this instant is told: before all that was over."""
        for begin, end in self.spans:
            if begin < instant < end:
                return end - MOMENT
        return instant

    def begins_at(self, now: float) -> float:
        """Return when a call of this instant begins: only after all that was over is told."""
        for _, end in self.spans:
            if end - MOMENT <= now < end:
                return end
        return now


def turns_near(ticks: Sequence[float], begin: float, end: float) -> Iterator[float]:
    """Yield an instant right after each of the turns between these instants."""
    near = sorted({tick for tick in ticks if begin < tick < end})[:MOST_NEAR]
    for before, after in pairwise([begin, *near, end]):
        yield min((before + after) / 2, before + NEAR / 2)
