"""The play of a program by the oracle, attempt by attempt."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from penstock import NonRetryable
from penstock.errors import StepFailed
from tests.durable_programs.absences import Absences
from tests.durable_programs.end_requests import RequestedEnd
from tests.durable_programs.interpreter import Interpreter, leaves
from tests.durable_programs.plain import GRACE, PAUSE, SOON, Cuts, Holds, Plain, Rounds, Unbegun, cancel_all
from tests.durable_programs.statements import Program, span
from tests.durable_programs.virtual_time import Stuck, VirtualLoop, run_virtually
from tests.durable_programs.world import MARK, World

TURNS = 100
"""More turns of the loop than the tasks of a program take to wait again."""


@dataclass
class Play:
    """The outcome of a program."""

    outcome: tuple[Any, ...]
    """completed and the result; failed, the error and the places that it names; cancelled; or stuck."""
    world: World
    state: dict[str, Any] = field(default_factory=dict)
    loose: set[str] = field(default_factory=set)
    """Places that were played between a failure and the end of its attempt: they may be played once more, or not."""
    failures: int = 0
    """How many attempts failed that were tried again."""


def chain(error: BaseException) -> list[BaseException]:
    """Return the errors that led to this one, itself included."""
    found: list[BaseException] = []
    open_errors: list[BaseException | None] = [error]
    while open_errors:
        error_or_none = open_errors.pop()
        if error_or_none is None or error_or_none in found:
            continue
        found.append(error_or_none)
        if isinstance(error_or_none, BaseExceptionGroup):
            open_errors.extend(error_or_none.exceptions)
        context = None if error_or_none.__suppress_context__ else error_or_none.__context__
        open_errors.extend((error_or_none.__cause__, context))
    return found


def failed_as(error: BaseException) -> tuple[Any, ...]:
    """Return the outcome that an error is."""
    places = [] if isinstance(error, BaseExceptionGroup) else sorted(set(MARK.findall(str(error))))
    return ("failed", type(error).__name__, places)


def final(error: BaseException) -> bool:
    """Return whether an error is never tried again."""
    return any(
        isinstance(leaf, NonRetryable) or (isinstance(leaf, StepFailed) and leaf.type == "NonRetryable")
        for leaf in leaves(error)
    )


def _loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


async def _until_all_wait() -> None:
    """Let every task run until it waits. No time passes: what is told next may be there a moment later."""
    loop, quiet = _loop(), 0
    for _ in range(TURNS):
        quiet = 0 if loop.is_ready else quiet + 1
        if quiet > 1:  # in between, the loop has looked for timers that are due
            return
        await asyncio.sleep(0)


async def _attempt(plain: Plain, last: bool) -> tuple[tuple[Any, ...], BaseException | None]:
    """Play the program once. Returns the outcome, and the error if another attempt may follow it."""
    program, loop = plain.program, asyncio.get_running_loop()
    for after, name, value in program.signals():
        if after <= loop.time():  # it is there when the run begins
            plain.send(name, value)
        else:
            loop.call_at(plain.world.absences.told_at(after), plain.send, name, value)
    play = Interpreter(plain, plain.world).play(program.body, "0", {})
    outside = set(_loop().open_tasks())
    main = asyncio.create_task(play)
    end = asyncio.create_task(_end(plain, main, last, outside))
    if plain.requested is None:
        return await end
    told, again = plain.end_told_at(), plain.requested.again
    loop.call_at(told, main.cancel, f"the run was asked to end as {plain.requested.ends_as}")
    over = plain.world.absences.begins_at(told) + min(GRACE, again or GRACE)
    await asyncio.wait({end}, timeout=over - loop.time())
    if end.done():
        outcome, error = end.result()
        is_cancelled = (
            outcome[0] == "failed" and error is None and (plain.came or plain.is_ending(within=10 * SOON))
        )
        return (("cancelled",) if is_cancelled else outcome), error
    plain.world.closed = True
    return ("cancelled",), None


async def _end(
    plain: Plain, main: asyncio.Task[Any], last: bool, outside: set[asyncio.Task[Any]]
) -> tuple[tuple[Any, ...], BaseException | None]:
    """Wait for the end of the function, of the tasks that it leaves, and of what undoes it. `outside`: the tasks that are none
    of it. Returns as `_attempt` does."""
    mine = asyncio.current_task()
    outcome: tuple[Any, ...]
    try:
        outcome = ("completed", await main)
    except asyncio.CancelledError as error:
        outcome = failed_as(error)
    except Exception as error:
        if not last and not final(error) and not plain.is_ending(within=plain.failure_slack()):
            await _until_all_wait()
            plain.note_failure()
            await plain.finish_running()
            if not plain.is_ending(within=plain.failure_slack()):
                plain.world.closed = True
                return failed_as(error), error
        outcome = failed_as(error)
    await _until_all_wait()
    while tasks := set(_loop().open_tasks()) - {mine} - outside:
        await cancel_all(tasks)
    if outcome[0] != "completed":
        await asyncio.sleep(plain.real_time() - time.monotonic())  # what is replayed takes no time
        for function, args in reversed(plain.undos):
            await plain.until_undone_again(args[0])
            with suppress(Exception):
                await function(*args)
    return outcome, None


def play(
    program: Program,
    *,
    seed: int = 0,
    durations: Mapping[tuple[str, int], float] | None = None,
    lingered: Mapping[tuple[str, int], float] | None = None,
    shuffled: bool = False,
    lateness: float = 0.0,
    late_starts: float = 0.0,
    absences: Absences | None = None,
    holds: Cuts | None = None,
    lost_failures: Mapping[int, float] | None = None,
    unbegun: Unbegun | None = None,
    heard: Mapping[str, float] | None = None,
    requested: RequestedEnd | None = None,
    ticks: list[float] | None = None,
) -> Play:
    """Play a program without any interruption. `seed` decides what comes first of what happens at once, and how late it is.
    `absences`, the `holds` of calls that a crash cut off, the calls that a crash left `unbegun`, the `lost_failures` of attempts,
    when signals were `heard`, how long cancelled calls `lingered`, and the `requested` end are those of the run that it is
    compared with. The instants at which something happens are added to `ticks`."""
    came = requested is not None
    if requested is None and program.cancelled is not None:
        requested = RequestedEnd(span("cancel", program.cancelled))
    rounds: Rounds = defaultdict(list)
    held: Holds = {}
    failures: list[float] = []
    loose: set[str] = set()
    started: Counter[str] = Counter()
    attempts = program.attempts
    before: Plain | None = None
    while True:
        attempts -= 1
        for key, (count, seconds, earlier) in (holds or {}).items():
            if earlier <= len(failures):
                held[key] = max((count, seconds), held.get(key, (0, 0.0)))
        world = World(
            seed,
            shuffled,
            lateness,
            late_starts,
            dict(durations or {}),
            lingered,
            absences or Absences(),
            records_at_once=True,
            requested_at=math.inf if requested is None else requested.instant,
            heard=dict(heard or {}),
        )
        plain = Plain(
            program,
            world,
            rounds,
            held,
            failures,
            before,
            requested,
            came=came,
            lost_failures=lost_failures,
            unbegun=unbegun,
        )
        before = plain
        tried: list[tuple[Any, BaseException | None, float, set[str], set[str], set[tuple[str, int]]]] = []

        async def attempt(plain: Plain = plain, last: bool = attempts <= 0, tried: list[Any] = tried) -> None:
            ended = await _attempt(plain, last)
            tried.append((*ended, *(plain.at_failure or plain.now_known())))

        try:
            run_virtually(attempt(), ticks)
        except Stuck:
            if not plain.world.closed:  # otherwise the run is over, and some of its tasks wait for ever
                return Play(("stuck",), plain.world, failures=len(failures))
        [(outcome, error, now, unsaid, running, cut)] = tried
        # A failure that was told replays at once, and ends an attempt in which other steps have just begun again.
        loose |= {place for place, instants in rounds.items() if instants and instants[-1] > now - PAUSE}
        started |= plain.world.children  # a child that an attempt before has started stays
        if error is None:
            plain.world.children = started
            plain.world.times = {place: plain.time_at(place) for place in plain.world.times}
            return Play(outcome, plain.world, plain.state, loose, len(failures))
        causes = {error.place for error in chain(error) if hasattr(error, "place")}
        for place in causes:
            told_at, calls, children, state = plain.told_at[place]
            plain.caused_at = min(plain.caused_at, told_at)
            loose.update(call.place for call in plain.world.calls[calls:])
            loose |= plain.world.children.keys() - children
            loose |= plain.state.keys() - state
        loose |= running
        for place in causes | unsaid:
            rounds[place].append(now + PAUSE)
        failures.append(now)
        if ticks is not None:
            ticks.append(now + PAUSE)  # a replay that fails at once has no other instant
        for place, call in cut:
            if place not in causes | unsaid:
                held[place, call] = max((len(failures), 0.0), held.get((place, call), (0, 0.0)))
