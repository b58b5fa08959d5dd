"""The world around one run of a program: the functions of its steps, its children, and a log of what was called."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any
from zlib import crc32

from penstock import NonRetryable
from tests.durable_programs.absences import NEAR, Absences
from tests.durable_programs.statements import ALWAYS, HOUR, Child, Step, span

LOOK = 300.0
"""Seconds between two looks for signals while a step of hours runs. Half a second would be half a million looks."""
HANGS = 5_000 * 24 * HOUR
"""Seconds that a call hangs."""
MARK = re.compile(r"<([^<>]*)>")


@dataclass
class Call:
    """One call of the function of a step, or of a compensation."""

    place: str
    began: float
    ended: float | None = None
    cancelled: bool = False
    recorded: bool = False
    cut: bool = False
    """A crash ended the call, or lost its result: the next attempt makes it again."""
    failures: int = 0
    """How many attempts had failed before."""
    lingered: float | None = None
    """How many seconds the call went on after it was cancelled."""
    is_cut_short: bool = False
    """The call was to go on longer after it was cancelled, and no crash ended it."""
    duration: float = 0.0
    """How many seconds the call takes that nothing cancels. A call that hangs takes more."""
    resumed: float = 0.0
    """When the attempt after the last of these began."""


@dataclass
class World:
    """`durations` are those of the nth call of a place that ends; a call that is not in it takes the time that `seed` says."""

    seed: int = 0
    shuffled: bool = False
    """The seed alone decides what ends first of what takes no hours."""
    lateness: float = 0.0
    """Seconds that a shuffled play may be late with anything, sleeps included; 0: with nothing but what happens at once."""
    late_starts: float = 0.0
    """Seconds that each child begins late, and nothing else."""
    durations: dict[tuple[str, int], float] = field(default_factory=dict)
    lingered: Mapping[tuple[str, int], float] | None = None
    """How long the nth call of a place went on that was cancelled. None: as long as the step is deaf."""
    absences: Absences = field(default_factory=Absences)
    records_at_once: bool = False
    """A call is recorded when it ends. Without it, whoever plays the program says when."""
    calls: list[Call] = field(default_factory=list)
    undone: list[Call] = field(default_factory=list)
    children: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    """The failures of each place that are recorded."""
    set_aside: Counter[str] = field(default_factory=Counter)
    """The calls of each place that ended before this world began, and do not count any more."""
    set_aside_failures: Counter[str] = field(default_factory=Counter)
    times: dict[str, datetime] = field(default_factory=dict)
    """What the program was told of the time."""
    wrong: list[str] = field(default_factory=list)
    """What a program saw that no program may see."""
    crashed: bool = False
    """The attempt has crashed, and the next one has not begun."""
    failures: int = 0
    resumed: float = 0.0
    closed: bool = False
    """The attempt is over: nothing is called any more."""
    requested_at: float = math.inf
    """When the end of the run was requested."""
    heard: dict[str, float] = field(default_factory=dict)
    """The instant at which an attempt first read each signal, by its value: the attempt that was told it, or else the last."""
    reasons: dict[str, str] = field(default_factory=dict)
    """What the program was told of the end of the run, by place."""

    async def step(self, place: str, step: Step, extra: str) -> str:
        """Be the function of a step."""
        call = self._call(place)
        self.calls.append(call)
        seconds = step.hours * HOUR + (0 if self.shuffled else 0.1 * step.yields)
        await self._take(call, self.calls, seconds, hangs=step.hangs, deaf=step.deaf)
        if self.fails(place, step):
            self._end(call, failed=True)
            raise (OSError if step.retryable else NonRetryable)(f"<{place}>")
        self._end(call)
        return value_of(place, step, extra)

    def check_open(self) -> None:
        """Raise CancelledError in a task that goes on after the end of its attempt."""
        if self.closed:
            raise asyncio.CancelledError

    def _call(self, place: str) -> Call:
        self.check_open()
        return Call(place, time.monotonic(), cut=self.crashed, failures=self.failures, resumed=self.resumed)

    def fails(self, place: str, step: Step) -> bool:
        """Return whether a call of this step would fail now."""
        return step.fails == ALWAYS or self.failed[place] < step.fails

    async def undo(self, place: str, hangs: bool = False) -> str:
        """Be a compensation."""
        call = self._call(place)
        self.undone.append(call)
        await self._take(call, self.undone, 0, hangs=hangs)
        self._end(call)
        return f"<undo {place}>"

    def child(self, place: str, fails: bool = False) -> str:
        """Be another action."""
        self.check_open()
        self.children[place] += 1
        if fails:
            raise OSError(f"<{place}>")
        return f"<{place}>"

    def start_child(self, place: str) -> None:
        """Note the start of another action that takes days. A call whose child was cancelled before a failure starts another
        child, which counts as the same."""
        self.check_open()
        self.children[place] = 1

    def note_cancellation(self, place: str, error: asyncio.CancelledError) -> None:
        """Note what a cancellation says of the end of the run. A cancellation that a program makes says nothing."""
        if text := str(error):
            self.reasons[place] = text

    async def _take(
        self, call: Call, calls: Sequence[Call], seconds: float, *, hangs: bool = False, deaf: float = 0.0
    ) -> None:
        number = self.set_aside[call.place] + self.ended(call.place, calls)
        chance = self._chance(f"{call.place} {number}") * (self.lateness or 1.0 if self.shuffled else 0.01)
        duration = self.durations.get((call.place, number), seconds + chance + 1e-4)
        call.duration = duration
        try:
            await asyncio.sleep(duration)
            if hangs and call.began + NEAR < self.requested_at <= time.monotonic():
                await asyncio.sleep(HANGS)
        except asyncio.CancelledError:
            call.cancelled, call.cut = True, call.cut or self.crashed
            if not self.records_at_once:  # a plain play waits in its own branch
                await self._linger(call, deaf)
            raise

    async def _linger(self, call: Call, deaf: float) -> None:
        began, seconds = time.monotonic(), self._deafness(deaf)
        try:
            await asyncio.sleep(seconds)
        finally:
            call.lingered = time.monotonic() - began
            crashed = call.cut or self.crashed
            call.is_cut_short = call.lingered < seconds - NEAR and not crashed

    def lingers(self, place: str, step: Step) -> float:
        """Return how long a call of this step goes on that is cancelled now: as long as in the run that this play is compared
        with, which may have lost the call with a crash. The run may have cancelled this call in several attempts. It goes on only
        in the one that is asked to end."""
        if self.lingered is None:
            return self._deafness(step.deaf)
        if time.monotonic() + NEAR < self.requested_at:
            return 0.0
        number = self.set_aside[place] + self.ended(place, self.calls)
        return self.lingered.get((place, number), 0.0)

    def _deafness(self, seconds: float) -> float:
        """Return how long a call goes on that is cancelled now, and is deaf for so many seconds once the end of the run is
        requested."""
        return seconds if self.requested_at <= time.monotonic() else 0.0

    def ended(self, place: str, calls: Sequence[Call]) -> int:
        """Return how many of these calls of a place have ended."""
        return sum(1 for call in calls if call.place == place and call.ended is not None)

    def delay(self, what: str) -> float:
        """Return how much later this is than all else that happens at once: of each second seed by less than a step takes. Of
        each fourth seed all children begin at once, and may end after steps that take longer."""
        if not self.shuffled:
            return 0.0
        near = self.seed % 2 == 0 or (self.seed % 4 == 1 and what.startswith("start of"))
        return self._chance(what) * (self.lateness or (1e-6 if near else 1.0))

    def late(self, what: str) -> float:
        """Return how many seconds a sleep is late."""
        return self._chance(what) * self.lateness

    def seen(self, what: str) -> float:
        """Return how many seconds pass in a shuffled play of an odd seed until the run looks for signals while steps run, unless
        this play knows when they were heard."""
        return self._chance(what) * LOOK if self.shuffled and self.seed % 2 and not self.heard else 0.0

    def _chance(self, what: str) -> float:
        text = f"{self.seed} {what}".encode()
        if not self.shuffled:
            return crc32(text) / 2**32
        # The checksums of seven names have only 64 orders: another seed flips the same bits of all of them.
        return int.from_bytes(blake2b(text, digest_size=4).digest()) / 2**32

    def _end(self, call: Call, *, failed: bool = False) -> None:
        call.ended = time.monotonic()
        if self.records_at_once:
            call.recorded = True
            self.failed[call.place] += failed

    @property
    def busy(self) -> bool:
        """Return whether a call runs."""
        return any(call.ended is None and not call.cancelled for call in (*self.calls, *self.undone))

    def crash(self) -> None:
        """End the attempt: what its calls give is lost where it is not recorded."""
        self.crashed = True
        for call in (*self.calls, *self.undone):
            call.cut = call.cut or not (call.recorded or call.cancelled)

    def record(self, text: str, *, failed: bool) -> None:
        """A call of the place that the text names is recorded."""
        for place in MARK.findall(text)[:1]:
            calls = self.undone if place.startswith("undo ") else self.calls
            place = place.removeprefix("undo ")
            for call in reversed(calls):
                if call.place == place and call.ended is not None and not call.recorded:
                    call.recorded = True
                    self.failed[place] += failed
                    return


def value_of(place: str, step: Step, extra: str) -> str:
    """Return what the function of a step returns."""
    return f"{step.name}{extra}<{place}>"


def parameters_of(place: str, child: Child) -> dict[str, Any]:
    """Return the parameters of a child. One that takes no time is not told how many seconds it takes."""
    seconds = {"seconds": span(f"{place}+", child.days)} if child.days else {}
    return {"place": place, "fails": child.fails, **seconds}
