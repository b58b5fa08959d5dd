"""Programs in the testing kit: durable runs without servers, in virtual time, crashed where a test says."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

import orjson

from penstock import DurableContext, action
from penstock.engine.durable import waiting
from penstock.engine.durable.records import (
    COMPLETED,
    END,
    FAILED,
    RUN,
    SIGNAL,
    Child,
    ChildStart,
    History,
    Key,
    Record,
)
from penstock.errors import ExecutionFailed
from penstock.language.definitions.action import Action
from penstock.run.outcomes import Outcome, TaskError
from penstock.testing import DurableRun
from penstock.testing.durable_memory import AttemptMemory, Commit, Memory
from tests.durable_programs.end_requests import EndRequest, LostEnd, Moments, RequestedEnd, Status
from tests.durable_programs.interpreter import CHILD, Interpreter
from tests.durable_programs.plain import BEGIN, GRACE, PAUSE, SOON, arrivals
from tests.durable_programs.plain_play import Play
from tests.durable_programs.statements import DAY, Program, Value, Wait, span, wait_name
from tests.durable_programs.virtual_time import Stuck, VirtualLoop, run_virtually
from tests.durable_programs.world import LOOK, MARK, World

logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # errors of tasks that a program never awaits

MOST_ATTEMPTS = 300
SETTLED = 3.0
"""Seconds after a suspension in which a plain play still tells what the run was told before it."""
ROUNDING = 1e-6
"""Seconds by which two sums of instants may differ."""
NEVER_LATE: Mapping[int, int] = {}
PLAYED: ContextVar[tuple[Program, World]] = ContextVar("played")
FAILURE_TEXT = re.compile(
    r"(?:p\.program failed|execution \S+ ended as failed): (?:\w+\.)*(\w+): (.*)", re.DOTALL
)


class VirtualMemory(Memory):
    """The memory of a run whose time is that of the loop."""

    world: World
    run: CrashedRun
    late: Mapping[int, int]
    suspensions: int = 0
    failed_at: float | None = None
    """When the function of the attempt failed that is tried again."""
    current: VirtualAttempt | None = None
    requested: Status = "cancelled"
    """The status as which the run is asked to end."""

    def __init__(self, now: datetime, commit: Commit) -> None:
        super().__init__(now, commit)
        self._started = asyncio.Event()

    @property
    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=time.monotonic())

    @now.setter
    def now(self, instant: datetime) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.clock.now = max(loop.clock.now, (instant - BEGIN).total_seconds())

    def begin(self) -> AttemptMemory:
        self.world.crashed = False
        self._attempt += 1
        self.current = VirtualAttempt(self, self._attempt)
        return self.current

    def move_on(self, awaited: Mapping[str, Any]) -> None:
        """Begin the next attempt so many days late as the test says; at once where the end of the run is requested."""
        self._request_due()
        if self.ends_as is not None:
            return
        begin = time.monotonic()
        super().move_on(awaited)
        if days := self.late.get(self.suspensions):
            self.now += timedelta(seconds=span(f"late {self.suspensions}", days))
            self.world.absences.spans.append((begin + SETTLED, time.monotonic()))
        self.suspensions += 1

    def _request_due(self) -> None:
        """Request the end of the run where its attempt is over, and only turns of the loop are left until the request."""
        if self.run.turns_left is not None:
            self.current = None
            self.run.request_end()

    def fail(self, error: TaskError) -> None:
        """Let as much time pass from the failure to the next attempt as in a plain play."""
        super().fail(error)
        self._request_due()
        if self.failed_at is not None:
            self.now = BEGIN + timedelta(seconds=self.failed_at + PAUSE)
        self.failed_at = None
        if self.run.end is not None:
            self.run.tell_end()
        self.world.failures, self.world.resumed = self.failures, time.monotonic()

    def arrive(self) -> None:
        super().arrive()
        if self.ends_as is not None:
            self.ends_as = self.requested

    def _store(self, start: ChildStart) -> None:
        """Store the start of a child. One that takes a while ends by itself, like an answer that comes then."""
        super()._store(start)
        self._started.set()
        if start.record.kind != RUN or "seconds" not in start.parameters:
            return
        child, place = self.children[start.record.key], start.parameters["place"]
        del self._running[start.record.key]
        self.world.start_child(place)
        end: tuple[str, str | None] = (COMPLETED, orjson.dumps(f"<{place}>").decode())
        if start.parameters["fails"]:
            end = (FAILED, None)
            child.error = orjson.dumps({"type": "OSError", "message": f"<{place}>"}).decode()
        self._due[child.id] = (self._in(start.parameters["seconds"]), *end)

    async def until_start(self, seconds: float) -> None:
        """Wait until a child is started and awaited, so many seconds at most. A run looks for its end within a moment, not only
        with the next look."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._started.wait()
                await asyncio.sleep(SOON)
        self._started.clear()

    def until_next(self) -> float:
        """Return the seconds until the next due timer, answer or signal."""
        instants = [due for due, _, _ in self._due.values()] + [due for due, _, _ in self.signals]
        ahead = [(due - self.now).total_seconds() for due in instants if due > self.now]
        return min(ahead, default=366 * DAY)


class VirtualAttempt(AttemptMemory):
    """An attempt that looks again when something has come, instead of all the time. `has_begun`: a worker hands back an attempt
    that is asked to end before it has begun. `asked`: its worker was asked to end it."""

    has_begun = False
    asked = False

    def __init__(self, memory: Memory, attempt: int) -> None:
        super().__init__(memory, attempt)
        self._heard: set[Key] = set()

    def _hear(self, records: Iterable[Record]) -> None:
        """Note when this attempt first reads each signal that no attempt before has told."""
        assert isinstance(self._memory, VirtualMemory)
        for record in records:
            if record.kind == SIGNAL and record.told is None and record.key not in self._heard:
                self._heard.add(record.key)
                self._memory.world.heard[orjson.loads(record.result or "null")] = time.monotonic()

    async def load(self) -> History:
        self.has_begun = True
        history = await super().load()
        self.asked = self.asked or history.ends_as is not None
        self._hear(history.records.values())
        return history

    async def record(self, records: Sequence[Record]) -> Mapping[Key, Record]:
        stored = await super().record(records)
        self._hear(stored.values())
        return stored

    def asked_to_end(self) -> bool:
        return self.asked

    def ends_at_once(self) -> bool:
        assert isinstance(self._memory, VirtualMemory)
        return self._memory.run.over

    async def ended(self, ids: Sequence[UUID], seconds: float) -> Mapping[UUID, Child]:
        memory = self._memory
        assert isinstance(memory, VirtualMemory)
        memory.arrive()
        if not any(child.ended for child in memory.children.values() if child.id in ids):
            ahead = min(seconds, memory.until_next())
            # A run without calls looks again at once, to suspend. One that may not suspend waits for what comes next.
            await memory.until_start(ahead if memory.world.busy or ahead > 1 else SOON)
        memory.arrive()
        return await super().ended(ids, 0)

    async def look(
        self, signals: Sequence[Key], children: Sequence[UUID]
    ) -> tuple[Sequence[Record], Mapping[UUID, Child]]:
        self._memory.arrive()
        sent, ends = await super().look(signals, children)
        self._hear(sent)
        return sent, ends


class CrashedRun(DurableRun):
    """A run that is crashed at several commits. In `crashes`, 2n stands for right before the nth commit, and 2n + 1 for right
    after it. `late`: the days by which the attempt after the nth suspension is late. `request`: the request to end the run."""

    def __init__(
        self, world: World, crashes: Collection[int], late: Mapping[int, int], request: EndRequest | None
    ) -> None:
        self.world = world
        self.request = request
        self.end: RequestedEnd | None = None
        """The end that was requested."""
        self.turns_left: int | None = None
        """Turns of the loop until the end is requested."""
        self.over = False
        """The end was requested once more."""
        self.told_at = 0.0
        """When the requested end is told."""
        self._once_more: asyncio.TimerHandle | None = None
        self.commit_times: list[float] = []
        self.pauses: list[tuple[float, float]] = []
        """When each attempt failed that was tried again, and when the next one began."""
        self.lost_failures: dict[int, float] = {}
        """When a crash lost the failure of an attempt, by how many attempts had failed before."""
        self.lost_end: LostEnd | None = None
        """The last crash before it was recorded that the run was told the requested end."""
        self._is_end_recorded = False
        self._recorded_at = 0.0
        """When the last commit was that no crash lost."""
        self._task: asyncio.Task[Outcome | None] | None = None
        self.crashes = set(crashes)
        self.late = late
        self.crashed_at: list[str] = []
        self._tries: dict[Key, int] = {}
        """The tries of each step as written last."""
        super().__init__()

    def __post_init__(self) -> None:
        self._memory = self.memory = VirtualMemory(BEGIN, self._commit)
        self.memory.world, self.memory.run, self.memory.late = self.world, self, self.late

    def _commit(self, records: list[Any], write: Callable[[], None]) -> None:
        place, self.commits = self.commits, self.commits + 1
        self.commit_times.append(time.monotonic())
        if 2 * place in self.crashes:
            self._crash(f"before {_text(records)}")
        write()
        self._recorded_at = time.monotonic()
        self._is_end_recorded = self._is_end_recorded or any(record.kind == END for record in records)
        for record in records:
            self._note(record)
        if self.request is not None and self.request.commit == place:
            self._request_after(self.request.turns)
        if 2 * place + 1 in self.crashes:
            self._crash(f"after {_text(records)}")

    def begin(self) -> None:
        """Let the end of the run be requested at its instant."""
        if self.request is not None:
            self.memory.requested = self.request.ends_as
        if self.request is not None and (instant := self.request.instant) is not None:
            self.cancel(after=instant)
            asyncio.get_running_loop().call_at(instant, self.request_end)

    def _request_after(self, turns: int) -> None:
        self.turns_left = turns
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        if self.turns_left:
            self._request_after(self.turns_left - 1)
        elif self.turns_left == 0:
            self.request_end()

    def request_end(self) -> None:
        """Request the end of the run, as the store does, and tell its attempt, as a worker does."""
        assert self.request is not None, "a request that is due"
        self.turns_left = None
        instant, ends_as = self.request.instant, self.request.ends_as
        at = time.monotonic() if instant is None else instant
        self.end = RequestedEnd(at, instant is None, self.request.again, ends_as)
        self.world.requested_at = at
        self.memory.ends_as, self.memory.cancelled_at = ends_as, None
        attempt, task = self.memory.current, self._task
        if (
            attempt is not None
            and task is not None
            and not task.done()
            and attempt.has_begun
            and not attempt.asked
        ):
            attempt.asked = True
            task.cancel()
        self.tell_end()

    def tell_end(self) -> None:
        """Begin the time in which the run cleans up. Let the end be requested once more, as long after it is told as the request
        says. After an attempt that failed it is told with the next one."""
        self.told_at = time.monotonic()
        if self._once_more is not None:
            self._once_more.cancel()
        if self.request is not None and self.request.again is not None:
            loop = asyncio.get_running_loop()
            self._once_more = loop.call_at(self.told_at + self.request.again, self._end_at_once)

    def _end_at_once(self) -> None:
        self.over = True
        if self._task is not None:
            self._task.cancel()

    async def _attempt(self, *arguments: Any) -> Any:
        assert self.attempts < MOST_ATTEMPTS, f"the run has not ended after {MOST_ATTEMPTS} attempts"
        if self.over and self.end is not None:
            return ended(self.end)
        self.memory.current = None
        task = self._task = asyncio.create_task(super()._attempt(*arguments))
        try:
            return await task
        except asyncio.CancelledError:
            if self.end is None or not task.cancelled():
                raise
            return ended(self.end)

    def _is_retried(self, action: Action[..., Any], outcome: Outcome) -> bool:
        retried = super()._is_retried(action, outcome)
        if retried and self.memory.failed_at is None:
            self.memory.failed_at = time.monotonic()
            self.pauses.append((self.memory.failed_at, self.memory.failed_at + PAUSE))
            if self.request is not None and self.request.failure == self.memory.failures and not self.end:
                self._request_after(self.request.turns)
        return retried

    def _crash(self, where: str) -> None:
        self.crashed_at.append(where)
        if self.memory.failed_at is not None:
            self.lost_failures[self.memory.failures] = time.monotonic()
        if not self._is_end_recorded:
            self.lost_end = LostEnd(self._recorded_at, time.monotonic())
        self.world.crash()
        super()._crash(where)

    def _note(self, record: Any) -> None:
        if record.kind != "step" or record.status not in ("started", "failed", "completed"):
            return
        before, self._tries[record.key] = self._tries.get(record.key, 0), record.tries
        if record.tries == before:  # a cancellation was taken back: its error is that of a try before
            return
        if record.error is not None:
            self.world.record(orjson.loads(record.error)["message"], failed=True)
        elif record.status == "completed" and record.result is not None:
            self.world.record(record.result, failed=False)


def _text(records: Sequence[Record]) -> str:
    return ", ".join(f"{record.kind} {record.key}" for record in records)


def ended(end: RequestedEnd) -> Outcome:
    """Return the outcome that a worker reports of an attempt that it was asked to end."""
    return Outcome("failed", error=TaskError("CancelledError", f"the run was asked to end as {end.ends_as}"))


class KitPlay(Play):
    """The outcome of a program in the kit. `is_cut`: its cleanup had not ended within its time."""

    run: CrashedRun
    is_cut: bool = False

    def moments(self) -> Moments:
        """Return the moments at which the end of such a run can be requested."""
        calls = (*self.world.calls, *self.world.undone)
        instants = [call.began for call in calls] + [call.ended for call in calls if call.ended is not None]
        undone = [(call.began, call.ended) for call in self.world.undone if call.ended is not None]
        instants += self.run.commit_times
        return Moments(instants, self.run.commits, self.run.pauses, undone)


def play_in_kit(
    program: Program,
    crashes: Collection[int] = (),
    late: Mapping[int, int] = NEVER_LATE,
    *,
    seed: int = 0,
    request: EndRequest | None = None,
) -> KitPlay:
    """Play a program in the testing kit, crashed at these points, late by so many days after the nth suspension, and asked to end
    as `request` says. Without it the program says when it is cancelled."""
    if request is None and program.cancelled is not None:
        request = EndRequest(span("cancel", program.cancelled))
    plays: list[KitPlay] = []
    looks = waiting.LOOK, waiting.SIGNAL_LOOK
    waiting.LOOK = waiting.SIGNAL_LOOK = LOOK
    try:
        run_virtually(_play(program, crashes, late, seed, request, plays))
    finally:
        waiting.LOOK, waiting.SIGNAL_LOOK = looks
    return plays[0]


@cache
def _action(attempts: int) -> Action[..., Any]:
    @action(pack="p", ref="p.program", retry={"max_attempts": attempts, "initial_delay": 0})
    async def function(ctx: DurableContext) -> Any:
        program, world = PLAYED.get()
        return await Interpreter(ctx, world).play(program.body, "0", {})

    return function


async def _play(
    program: Program,
    crashes: Collection[int],
    late: Mapping[int, int],
    seed: int,
    request: EndRequest | None,
    plays: list[KitPlay],
) -> None:
    world = World(seed)
    run = CrashedRun(world, crashes, late, request)
    PLAYED.set((program, world))
    run.child(CHILD, world.child)
    for after, name, value in program.signals():
        run.signal(name, value, after=after)
    come = arrivals(program)
    for place, wait in program.places:
        if isinstance(wait, Wait) and (name := wait_name(place)) in come:
            for _ in range(3):  # for each time that the wait begins anew
                (run.answer if wait.ask else run.event)(name, name=name, after=come[name])
    run.begin()
    outcome: tuple[Any, ...]
    try:
        outcome = ("completed", await run(_action(program.attempts)))
    except ExecutionFailed as error:
        outcome = failed_with(str(error))
    except Stuck:
        outcome = ("stuck",)
    except AssertionError as error:
        outcome = ("stuck",) if "nothing that ends the wait" in str(error) else ("broken", repr(error))
    except (Exception, asyncio.CancelledError) as error:
        outcome = ("broken", repr(error))
    run.turns_left = None  # a request that comes after the end of the run is none
    state = {
        place: run.state(place)
        for place, value in program.places
        if isinstance(value, Value) and value.kind == "set" and run.state(place) is not None
    }
    if run.end is not None and outcome[0] == "failed":
        outcome = ("cancelled",)
    play = KitPlay(outcome, world, state)
    if run.end is not None:
        grace = min(GRACE, run.end.again or GRACE)
        play.is_cut = time.monotonic() - run.told_at >= grace - ROUNDING
    play.run, play.failures = run, run.memory.failures
    plays.append(play)


def failed_with(text: str) -> tuple[Any, ...]:
    """Return the outcome that the message of an ExecutionFailed tells."""
    if "asked to end as" in text:
        return ("cancelled",)
    matched = FAILURE_TEXT.fullmatch(text)
    if matched is None:
        return ("broken", text)
    kind, message = matched.groups()
    if kind == "ReplayMismatch" or "wait for each other" in message:
        return ("broken", text)
    return ("failed", kind, [] if kind.endswith("Group") else sorted(set(MARK.findall(message))))
