"""The oracle: a context without a journal, and a play of a program that nothing interrupts.

It follows docs/durable.md alone. An attempt that fails and is tried again is played from the beginning, in a new world, in which
the steps that caused the failure are tried further from that instant on."""

from __future__ import annotations

import asyncio
import math
import random
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from penstock import NonRetryable
from penstock.errors import StepFailed, StepTimedOut
from tests.durable_programs.absences import MOMENT, NEAR
from tests.durable_programs.end_requests import RequestedEnd
from tests.durable_programs.statements import DAY, Program, Step, Wait, span, wait_name
from tests.durable_programs.world import LOOK, World

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SOON = 1e-8
"""Seconds of a turn: far fewer than between the ends of two functions, which it must not put in another order."""
TOLD = SOON * 3 / 4
"""Seconds from the begin of an attempt until it tells the ends of the steps that its replay cancels. It tells the end of the run
and what ended before it began earlier, and it begins calls later."""
PAUSE = 2.0
"""Longer than a step takes that takes no hours: what ran when an attempt failed has ended before the next one begins."""
GRACE = 10.0
"""Seconds that a cancelled run of the kit has to clean up."""
NEVER = 10_000 * DAY
HEARD_WITHIN_S = 2 * LOOK + MOMENT
"""Seconds in which a run hears a signal that was sent and is waited for. It sleeps as long as between two looks, and may wake up
right before its next look is due."""
Rounds = dict[str, list[float]]
Hold = tuple[int, float]
"""How many attempts fail before a call begins, and how many seconds after that the call begins at the earliest."""
Holds = dict[tuple[str, int], Hold]
Cuts = dict[tuple[str, int], tuple[int, float, int]]
"""The holds of calls that a crash cut off, and how many attempts had failed before that crash. An attempt before it held no such
call."""


class Unbegun(NamedTuple):
    """The calls that a crash cut off before they began: those that are asked for right before it, and that the run never made.
    The next attempt is told the end of the run first."""

    crashed: float
    made: frozenset[tuple[str, int]]


class First(NamedTuple):
    name: str
    value: Any


class Plain:
    """A context that does everything at once."""

    def __init__(
        self,
        program: Program,
        world: World,
        rounds: Rounds,
        holds: Holds,
        failures: Sequence[float],
        before: Plain | None = None,
        requested: RequestedEnd | None = None,
        *,
        came: bool = False,
        lost_failures: Mapping[int, float] | None = None,
        unbegun: Unbegun | None = None,
    ) -> None:
        self.program = program
        self.requested = requested
        """The end that the run is asked for."""
        self.came = came
        """The request came before the end of the run that this play is compared with."""
        self.lost_failures = lost_failures or {}
        """When a crash lost the failure of an attempt that was to be tried again, by how many attempts had failed before. The
        function fails again at this instant."""
        self._unbegun = unbegun
        self.at_failure: tuple[float, set[str], set[str], set[tuple[str, int]]] | None = None
        """What was known when the function failed that may be tried again."""
        self._calling: Counter[str] = Counter()
        """The functions of steps that run, by place."""
        self._held: asyncio.Event | None = None
        """Set once nothing runs. The function has failed and may be tried again: nothing is told and nothing begins."""
        self.world = world
        self.rounds = rounds
        self.failures = failures
        """The instants at which attempts failed. Nothing begins and nothing is told until the attempt after it begins."""
        self.holds = holds
        """When calls, the nth of their step, begin at the earliest: those that were cancelled before an attempt failed with the
        next attempt, and those that a crash cut off when they were made again. A wait that was cancelled before is asked once
        more, by its name."""
        self._before = before
        """The attempt before, which has failed."""
        self._asked: dict[str, float] = {}
        """The instant at which each step was asked for."""
        self._waits: dict[str, tuple[float, float]] = {}
        """When each sleep, deadline, child and question was asked for, and when it began."""
        self.cut: set[tuple[str, int]] = set()
        """The calls of steps, and the waits, that were cancelled or never began because of that."""
        self._dropped: dict[tuple[str, int], float] = {}
        """When each wait was cancelled. What it waits for is cancelled once another call begins."""
        self._number = len(failures)
        self._unseen: list[float] = []
        """The instants for which a call waited, and which had not come when it was cancelled."""
        self._begun: set[str] = set()
        self._told_if_cancelled: dict[str, float] = {}
        """When the end of each step is told that waits for the next attempt, if the step is cancelled meanwhile."""
        self._cancelled: dict[tuple[str, int], tuple[float, float]] = {}
        """When each call of a step was cancelled, and when its end was told."""
        self._ends: list[float] = []
        """When the ends of cancelled calls are told."""
        self._anew: set[str] = set()
        """The steps that are called anew: their calls in the attempts before are set aside."""
        self._ended: Counter[str] = Counter()
        """The calls of each step that have ended."""
        self.state: dict[str, Any] = {}
        self.undos: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self.told_at: dict[str, tuple[float, int, frozenset[str], frozenset[str]]] = {}
        """When a step's failure was told, and how many calls, which children and which state there were then."""
        self.caused_at = NEVER
        """When the first failure was told that caused the failure of this attempt."""
        self.running: dict[str, bool] = {}
        """The steps whose function runs, and whether their failure would be told."""
        self._deadlines = 0
        """How many waits with a deadline began."""
        self._hearings = 0
        """How many signals were there when they were waited for."""
        self._sent: dict[str, list[Any]] = defaultdict(list)
        self._unheard: dict[str, float] = {}
        """The instants of the signals that the run heard later than they were sent and waited for."""
        self._listening: dict[str, list[asyncio.Future[Any]]] = defaultdict(list)

    async def _until(self, instant: float) -> None:
        await asyncio.sleep(max(self.world.absences.told_at(instant) - time.monotonic(), 0))
        await self._until_told()

    def end_told_at(self) -> float:
        """Return when the requested end is told: with the next attempt where one has failed, before all else."""
        assert self.requested is not None, "a run that is asked to end"
        told = self.requested.told or self.world.absences.cancelled_at(self.requested.instant)
        for failed in self.failures:
            if failed < told < failed + PAUSE:
                told = failed + PAUSE - SOON / 2
        return told

    def is_ending(self, *, within: float = 0.0) -> bool:
        """Return whether the end of the run is requested, or will be `within` so many seconds. What this attempt replays happens
        when it begins."""
        if self.requested is None:
            return False
        told = self.end_told_at()
        return self.real_time() + within + 4 * math.ulp(told) >= told  # a timer may be due as much earlier

    def failure_slack(self) -> float:
        """Return the seconds after a failure in which a request counts as earlier than it."""
        return NEAR if self.requested is not None and self.requested.before_failure else 0.0

    def real_time(self) -> float:
        """Return the time of the run: an attempt replays at its begin what happened before."""
        return max(time.monotonic(), self.failures[-1] + PAUSE if self.failures else 0.0)

    async def finish_running(self) -> None:
        """Wait until the functions of steps that run have finished, and until a failure that a crash lost has come again. End
        the wait if the end of the run is requested."""
        fails_again = self.lost_failures.get(self._number, 0.0)
        if (self._calling or time.monotonic() < fails_again) and self.requested is not None:
            self._held = asyncio.Event()
            with suppress(TimeoutError):
                left = self.end_told_at() - time.monotonic()
                await asyncio.wait_for(
                    self._finished(self._held, fails_again), left if left < NEVER else None
                )
            self._held = None

    async def _finished(self, held: asyncio.Event, fails_again: float) -> None:
        if self._calling:
            await held.wait()
        await asyncio.sleep(max(fails_again - time.monotonic(), 0))

    async def _until_told(self) -> None:
        """Wait for ever where nothing is told any more in this attempt."""
        if self._held is not None:
            await asyncio.get_running_loop().create_future()

    async def _called(self, place: str, step: Step, function: Callable[..., Any], *args: Any) -> Any:
        """Call the function of a step, and wait until its end is told."""
        self._calling[place] += 1
        try:
            return await function(*args)
        except asyncio.CancelledError:
            await self._sleep_whatever(self.world.lingers(place, step))
            raise
        finally:
            self._calling -= Counter([place])
            self._cut_when_suspended()
            if self._held is not None:
                if not self._calling:
                    self._held.set()
                await self._until_told()

    def _begin(self) -> float:
        """Return when a call begins that is made now. One that was asked for when the function failed begins with the next
        attempt."""
        begin = now = time.monotonic()
        for failed in self.failures:
            if failed - SOON / 2 < now < failed + PAUSE:
                begin = failed + PAUSE
        return self.world.absences.begins_at(begin)

    def _begin_of(self, wait: str) -> float:
        """Return when a wait begins that is asked for now. A wait that an attempt before asked for at the same instant has begun
        then. One that it asked for at another instant, after a failure that is forgotten, is set aside. Such a wait and a new
        one begin with this attempt, although the play replays the instant before."""
        asked, begin = time.monotonic(), self._begin()
        attempt = self._before
        while attempt is not None and wait not in attempt._waits:
            attempt = attempt._before
        before, began = (NEVER, begin) if attempt is None else attempt._waits[wait]
        if abs(asked - before) <= SOON / 2:
            begin = max(begin, began)
        elif attempt is None or before >= attempt.caused_at:
            begin = max(begin, self.real_time())
        self._waits[wait] = asked, begin
        return begin

    def time_at(self, place: str) -> datetime:
        """Return the time that this place was told. It is recorded, and follows the same rule as the begin of a wait."""
        now = self.world.times[place]
        attempt = self._before
        while attempt is not None and place not in attempt.world.times:
            attempt = attempt._before
        if attempt is not None:
            before = attempt.world.times[place]
            was_earlier = (before - BEGIN).total_seconds() < attempt.caused_at - NEAR
            if was_earlier or abs(now - before) < timedelta(seconds=NEAR):
                return attempt.time_at(place)
        begins = self.failures[self._number - 1] + PAUSE if self._number else 0.0
        return max(now, BEGIN + timedelta(seconds=begins))

    def _seen_at(self, instant: float) -> float:
        """Return when a call is told this instant that it waits for. A call that was cancelled before an attempt failed is told
        with the next attempt what was over by then."""
        attempt = self._before
        while attempt is not None:
            failed = self.failures[attempt._number]
            if instant < failed and any(abs(instant - other) < NEAR for other in attempt._unseen):
                return failed + PAUSE
            attempt = attempt._before
        return instant

    def _drop(self, call: tuple[str, int]) -> None:
        """Note that a wait was cancelled. What it waits for is cut off once the run suspends itself, too."""
        self._dropped[call] = time.monotonic()
        self._cut_when_suspended()

    def _cut_when_suspended(self) -> None:
        """Cut off the waits that were cancelled before, unless a step runs with the next look."""

        def suspend() -> None:
            if not self._calling and self._held is None:
                self.cut |= dropped

        if dropped := self._dropped.keys() - self.cut:
            asyncio.get_running_loop().call_later(LOOK, suspend)

    def _cut_dropped(self) -> None:
        """Cut off the waits that were cancelled before, once a call begins that waits for an instant."""
        asyncio.get_running_loop().call_later(SOON, self._cut_dropped_by, time.monotonic())

    def _cut_dropped_by(self, asked: float) -> None:
        """Cut off the waits that were cancelled up to the turn in which a call was asked for: it begins after this turn."""
        self.cut |= {call for call, instant in self._dropped.items() if instant <= asked + SOON / 2}

    async def sleep(self, seconds: float) -> None:
        await self._sleep_since(self._begin_of(f"sleep {seconds}"), seconds)

    async def _sleep_since(self, begin: float, seconds: float) -> None:
        self._cut_dropped()
        instant = begin + seconds
        told = max(instant + self.world.late(f"sleep {seconds}"), self._seen_at(instant))
        try:
            await self._until(told)
        except asyncio.CancelledError:
            self._unseen.append(instant)
            raise

    async def _turn(self) -> None:
        """Wait until every task waits: nothing starts before, and what is cancelled until then never does. After an absence all
        that was over is told before."""
        asked = time.monotonic()
        await asyncio.sleep(self._begin() - asked + SOON)
        await self._until_told()
        self._cut_dropped_by(asked)

    async def _next_attempt(self, ended: str = "") -> None:
        """Wait for the next attempt where one has failed: what ended meanwhile is told then, in the order in which it ended, and
        what was asked for when the function failed begins then. An attempt that fails in its replay tells and begins nothing
        new: wait for the one after it. `ended`: the step that has ended."""
        now = told = time.monotonic()
        order, soon = 0.0, 0.0 if ended else SOON / 2
        for failed in self.failures:
            if failed - soon < told < failed + PAUSE:
                if told == now:
                    order = max(now - failed, 0.0) / PAUSE * SOON / 2
                told = failed + PAUSE + order
        if told > now:
            if ended:
                self._told_if_cancelled[ended] = told
            await self._until(told)
            self._told_if_cancelled.pop(ended, None)

    def _end_of(self, hold: Hold) -> float:
        failures, seconds = hold
        if failures > len(self.failures):
            return NEVER
        return seconds + (self.failures[failures - 1] + PAUSE if failures else 0.0)

    async def until_undone_again(self, place: str) -> None:
        """Wait until a compensation is called whose calls before were cut off by a crash."""
        if (hold := self.holds.get((place, 0))) is not None:
            await asyncio.sleep(self._end_of(hold) - time.monotonic())

    async def _until_held(self, place: str, hold: Hold) -> None:
        """Wait until the call of a step may begin."""
        failures, seconds = hold
        begin = self._end_of(hold)
        if failures and not seconds and begin < NEVER and self._was_called(place):
            self._told_if_cancelled[place] = begin + TOLD
        await asyncio.sleep(max(begin - time.monotonic(), 0))
        self._told_if_cancelled.pop(place, None)

    def _never_begins(self, call: tuple[str, int]) -> bool:
        """Return whether a crash cuts off the call that is asked for now."""
        lost = self._unbegun
        return lost is not None and abs(lost.crashed - time.monotonic()) < NEAR and call not in lost.made

    async def step(self, name: str, function: Callable[..., Any], *args: Any, retry: Any) -> Any:
        try:
            return await self._step(name, function, *args, retry=retry)
        except asyncio.CancelledError:
            call = args[0], self._ended[args[0]]
            self.cut.add(call)
            self._cancelled[call] = now, told = time.monotonic(), self._alone(self._end_of_cancelled(call))
            await self._sleep_whatever(told - now)
            raise

    def _end_of_cancelled(self, call: tuple[str, int]) -> float:
        """Return the instant at which the end of a call is told that is cancelled now."""
        place, now = call[0], time.monotonic()
        told_with_attempt = self._told_if_cancelled.pop(place, None)
        if self._before is not None and place not in self._anew:
            cancelled, told = self._before._cancelled.get(call, (NEVER, NEVER))
            if abs(cancelled - now) < SOON / 2:
                # The attempt before has recorded it. A cancellation that came after its failure is taken back, so that this
                # attempt tells it after all that its replay tells.
                is_recorded = told < self._before.caused_at
                return told if is_recorded else max(now, self.failures[-1] + PAUSE + TOLD)
        if told_with_attempt is not None:
            return told_with_attempt
        if place in self._begun and place not in self.running and (begin := self._begin_of_attempt()):
            return max(now, begin + TOLD)  # in its replay no task works for the step: it ends at once
        if place in self._begun:  # it takes a turn to end, in which other calls begin
            return now + 2 * SOON + self.world.delay(f"end of cancelled {place}")
        return now

    def _alone(self, told: float) -> float:
        """Return when the end of a cancelled call is told that would be told then: after the ends that are told at the same
        instant, since one thing is told at a time."""
        if told > time.monotonic():
            while any(abs(told - other) <= 2 * math.ulp(told) for other in self._ends):
                told += 3 * math.ulp(told)
            self._ends.append(told)
        return told

    def _begin_of_attempt(self) -> float | None:
        """Return the instant at which the attempt begins that begins now, and has begun no call yet."""
        begins = (failed + PAUSE for failed in self.failures)
        return next(
            (begin for begin in begins if begin - SOON < time.monotonic() < begin + SOON * 7 / 8), None
        )

    async def _sleep_whatever(self, seconds: float) -> None:
        """Sleep so long, however often the branch is cancelled."""
        over = time.monotonic() + seconds
        while (left := over - time.monotonic()) > SOON / 4:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(left)

    def _ask(self, place: str) -> None:
        """Ask for a step. One that an attempt before asked for at another instant, after a failure that is forgotten, is called
        anew: its calls so far are set aside. What was asked for before that failure was told stays."""
        self.world.check_open()
        now = time.monotonic()
        attempt = self._last_asked(place)
        if attempt is not None:
            ended, failed = attempt.world.set_aside[place], attempt.world.set_aside_failures[place]
            before = attempt._asked[place]
            if before >= attempt.caused_at and abs(now - before) > SOON / 2:
                ended += attempt.world.ended(place, attempt.world.calls)
                failed = attempt.world.failed[place]
                self.rounds[place] = []
                self._anew.add(place)
                anew = len(self.failures), 0.0
                self.holds[place, ended] = max(anew, self.holds.get((place, ended), (0, 0.0)))
            self._ended[place] = self.world.set_aside[place] = ended
            self.world.failed[place] = self.world.set_aside_failures[place] = failed
        self._asked[place] = now

    def _last_asked(self, place: str) -> Plain | None:
        """Return the attempt before this one that asked for a step last."""
        attempt = self._before
        while attempt is not None and place not in attempt._asked:
            attempt = attempt._before
        return attempt

    def _was_called(self, place: str) -> bool:
        """Return whether an attempt has called this step, and its calls count."""
        attempt: Plain | None = self
        while attempt is not None and place not in attempt._begun:
            attempt = None if place in attempt._anew else attempt._before
        return attempt is not None

    async def _step(self, name: str, function: Callable[..., Any], *args: Any, retry: Any) -> Any:
        place, step, _ = args
        self._ask(place)
        for round in range(1 + len(self.rounds[place])):
            if round:
                again = self.rounds[place][round - 1]
                self._told_if_cancelled[place] = again + TOLD
                await self._until(again)
                del self._told_if_cancelled[place]
            for tried in range(retry["max_attempts"]):
                if tried and retry["initial_delay"]:
                    # The delay counts from the end of the try, also if the attempt has failed before.
                    ended = self.world.absences.begins_at(time.monotonic())
                    await self._sleep_since(ended, retry["initial_delay"])
                if (hold := self.holds.get((place, self._ended[place]))) is not None:
                    await self._until_held(place, hold)
                await self._next_attempt()
                if self._never_begins((place, self._ended[place])):
                    await asyncio.sleep(NEVER)
                await self._turn()
                self._begun.add(place)
                self.running[place] = tried + 1 == retry["max_attempts"] or not step.retryable
                try:
                    value = await self._called(place, step, function, *args)
                    await self._next_attempt(place)
                    return value
                except (NonRetryable, OSError) as error:
                    self._ended[place] += 1
                    failure = self._failed(name, place, error)
                    if isinstance(error, NonRetryable):
                        break
                finally:
                    del self.running[place]
        before = len(self.world.calls), frozenset(self.world.children), frozenset(self.state)
        self.told_at.setdefault(place, (time.monotonic(), *before))
        raise failure

    def now_known(self) -> tuple[float, set[str], set[str], set[tuple[str, int]]]:
        """Return the time, the steps whose failure is not told, those whose function runs, and the calls that were cut off."""
        return self.real_time(), self.unsaid(), set(self.running), set(self.cut)

    def note_failure(self) -> None:
        """Note what there is when the function fails that may be tried again."""
        self.at_failure = self.now_known()

    def _failed(self, name: str, place: str, error: Exception) -> StepFailed:
        failure = StepFailed(f"step {name} failed: {error}", name=name, type=type(error).__name__)
        failure.place = place  # type: ignore[attr-defined]
        return failure

    def unsaid(self) -> set[str]:
        """Return the steps whose function runs and will fail, when an attempt has ended that could be told so."""
        steps = dict(self.program.places)
        return {
            place
            for place, last in self.running.items()
            if last and isinstance(step := steps.get(place), Step) and self.world.fails(place, step)
        }

    async def _start(self, place: str) -> None:
        """Wait until a child begins. Of children that are started at once, one may end before another begins: a crash between
        the two starts, and the function that fails of the first, and the other never begins."""
        if (left := self._begin_of(place) - time.monotonic()) > 0:
            await asyncio.sleep(left)
        await self._turn()
        await asyncio.sleep(self.world.late_starts + self.world.delay(f"start of {place}"))

    async def _end(self, place: str) -> None:
        """Wait until a child's end is told: another result may be told first."""
        await asyncio.sleep(SOON + self.world.delay(f"end of {place}"))
        await self._until_told()

    async def run(self, ref: str, parameters: dict[str, Any]) -> Any:
        if "seconds" in parameters:
            return await self._run_slowly(ref, **parameters)
        await self._start(parameters["place"])
        text = ""
        try:
            return self.world.child(**parameters)
        except OSError as error:
            text = f"{ref} failed: {error}"
        finally:
            await self._end(parameters["place"])
        raise StepFailed(text, name=ref, type="OSError")

    async def _run_slowly(self, ref: str, place: str, fails: bool, seconds: float) -> str:
        """Run a child that takes a while. One that was cancelled before a failure is started again with the next attempt."""
        try:
            if (hold := self.holds.get((place, 0))) is not None:
                await asyncio.sleep(max(self._end_of(hold) - time.monotonic(), 0))
            await self._start(place)
            self.world.start_child(place)
            await self._until(self._begin() + seconds + self.world.delay(f"end of {place}"))
        except asyncio.CancelledError:
            self._drop((place, 0))
            raise
        if fails:
            raise StepFailed(f"{ref} failed: <{place}>", name=ref, type="OSError")
        return f"<{place}>"

    async def map(self, ref: str, items: list[dict[str, Any]], concurrency: int) -> list[Any]:
        await self._start(str(items))
        values = [self.world.child(**item) for item in items]
        await self._end(str(items))
        return values

    async def signal(self, name: str, timeout: float | None = None) -> Any:
        heard = asyncio.get_running_loop().create_future()
        place = len(self._open_calls(name))
        self._listening[name].append(heard)
        told_after = 0.0
        if place < len(self._sent[name]):
            self._hearings += 1
            value, now = self._sent[name][place], time.monotonic()
            order = self._order_of(value)  # the one sent first is told first
            soon = now + SOON * (5 + order) / 10 + self.world.seen(f"signal {self._hearings}")
            was_heard = self.world.heard.get(value, now) < now  # the run had read it before it was asked for
            told_after = (soon if was_heard else self.world.absences.heard_at(soon)) - now
            heard_at = self._heard_at(value, now + told_after)
            asyncio.get_running_loop().call_at(heard_at, self._hear, name)
        try:
            return await self._within(heard, timeout, name, told_after)
        finally:
            self._listening[name].remove(heard)

    def _open_calls(self, name: str) -> list[asyncio.Future[Any]]:
        """Return the calls that wait for a signal of this name."""
        return [heard for heard in self._listening[name] if not heard.done()]

    def _hear(self, name: str) -> None:
        """Give a signal that was sent before to the first call that waits: the one that it was for may be cancelled. A signal is
        not heard before the one that was sent before it."""
        if not self._sent[name] or not (open_calls := self._open_calls(name)):
            return
        heard_at = self._unheard.get(self._sent[name][0], 0.0)
        if heard_at <= time.monotonic():
            open_calls[0].set_result(self._sent[name].pop(0))
        else:
            asyncio.get_running_loop().call_at(heard_at, self._hear, name)

    def _heard_at(self, value: str, since: float) -> float:
        """Return when a signal is heard that was sent, and is waited for, since this instant. That is when the run heard it which
        this play is compared with, unless that is too late. Of two signals that are heard at once, the first is the one that was
        sent first. What an attempt hears as it begins after an absence is told in the order of instants."""
        heard = self.world.heard.get(value, since)
        if not since + NEAR < heard < since + HEARD_WITHIN_S or self.world.absences.ends_at(heard):
            return since
        self._unheard[value] = max(since, heard + self._order_of(value) * SOON / 10)
        return self._unheard[value]

    def _order_of(self, value: str) -> int:
        """Return how many signals are sent before this one."""
        return [sent for _, _, sent in self.program.signals()].index(value)

    async def _within(
        self, waits: asyncio.Future[Any], timeout: float | None, name: str, told_after: float = 0.0
    ) -> Any:
        """Wait so many seconds at most. `told_after`: what was sent before is told then, also after the deadline."""
        instant = NEVER
        if timeout is not None:
            self._cut_dropped()
            begin = self._begin_of(f"{name} {timeout}") if timeout else self._begin()
            instant = deadline = begin + timeout
            self._deadlines += 1  # what does not come is told in a turn of its own, too
            late = self.world.delay(f"deadline {self._deadlines} of {name}")
            deadline = self.world.absences.told_at(max(deadline, self._begin() + SOON) + late)
            timeout = max(max(deadline, self._seen_at(instant)) - time.monotonic(), 2 * told_after)
        try:
            async with asyncio.timeout(
                timeout
            ):  # `wait_for` would take another turn to end once it is cancelled
                return await waits
        except TimeoutError:
            raise StepTimedOut("", name=name) from None
        except asyncio.CancelledError:
            self._unseen.append(instant)
            raise

    def send(self, name: str, value: Any) -> None:
        calls, earlier, now = self._open_calls(name), len(self._sent[name]), time.monotonic()
        heard_at = self._heard_at(value, now) if len(calls) > earlier else now
        if len(calls) > earlier and heard_at == now:
            calls[earlier].set_result(value)
            return
        self._sent[name].append(value)
        if heard_at > now:
            asyncio.get_running_loop().call_at(heard_at, self._hear, name)

    async def wait_for(self, _: str, timeout: float | None = None, name: str = "") -> Any:
        return {"payload": await self.ask("", timeout=timeout, name=name)}

    async def ask(self, _: str, timeout: float | None = None, name: str = "") -> Any:
        try:
            if (hold := self.holds.get((name, 0))) is not None:
                await asyncio.sleep(max(self._end_of(hold) - time.monotonic(), 0))
            return await self._answered(timeout, name)
        except asyncio.CancelledError:
            self._drop((name, 0))
            raise

    async def _answered(self, timeout: float | None, name: str) -> Any:
        waits = asyncio.get_running_loop().create_future()
        await self._start(name)
        if (comes := arrivals(self.program).get(name)) is not None:
            instant = self._begin() + comes + SOON
            asyncio.get_running_loop().call_at(
                self.world.absences.told_at(instant + self.world.delay(f"arrival of {name}")),
                lambda: None if waits.done() else waits.set_result(name),
            )
        return await self._within(waits, timeout, name)

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=time.monotonic())

    def random(self) -> float:
        return random.random()

    def uuid(self) -> uuid.UUID:
        return uuid.uuid4()

    def version(self, _: str) -> bool:
        return True

    def set(self, key: str, value: Any) -> None:
        self.state[key] = value

    def on_failure(self, function: Callable[..., Any], *args: Any) -> None:
        self.undos.append((function, args))

    async def first(self, **arms: Awaitable[Any]) -> First:
        tasks = {name: asyncio.ensure_future(arm) for name, arm in arms.items()}
        try:
            await asyncio.wait(tasks.values(), return_when=asyncio.FIRST_COMPLETED)
            name, winner = next((name, task) for name, task in tasks.items() if task.done())
        finally:
            await cancel_all(task for task in tasks.values() if not task.done())
        return First(name, winner.result())

    @asynccontextmanager
    async def timeout(self, seconds: float) -> Any:
        """Limit a block. One that catches the cancellation and goes on to its end is not late."""
        self._cut_dropped()
        instant = self._begin_of(f"timeout {seconds}") + seconds
        told = self.world.absences.told_at(instant + self.world.late(f"timeout {seconds}"))
        deadline = asyncio.timeout_at(max(told, self._seen_at(instant)))
        try:
            async with deadline:
                yield
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise StepTimedOut("", name="timeout") from error
        finally:
            if not deadline.expired():
                self._unseen.append(instant)


async def cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until they have ended."""
    open_tasks = sorted(tasks, key=lambda task: int(task.get_name().removeprefix("Task-")))
    for task in open_tasks:
        task.cancel()
    if open_tasks:
        await asyncio.gather(*open_tasks, return_exceptions=True)


def arrivals(program: Program) -> dict[str, float]:
    """Return after how many seconds what comes for each wait."""
    return {
        wait_name(place): span(f"{place}+", wait.comes)
        for place, wait in program.places
        if isinstance(wait, Wait) and wait.comes is not None
    }
