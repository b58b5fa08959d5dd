"""The comparison of a durable run with a plain run of the same program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

from hypothesis import reject

from tests.durable_programs.absences import NEAR, Absences
from tests.durable_programs.end_requests import EndPoint, EndRequest, LostEnd, RequestedEnd
from tests.durable_programs.kit_run import NEVER_LATE, SETTLED, KitPlay, play_in_kit
from tests.durable_programs.plain import GRACE, NEVER, Cuts, Unbegun
from tests.durable_programs.plain_play import Play, play
from tests.durable_programs.statements import Program
from tests.durable_programs.world import LOOK, Call, World

ORDERS = 100
"""Of what happens at once: that many are tried before a run is wrong."""
ORDERS_OF_MANY = 400
"""Orders that are tried if at least MANY_CANCELLED calls were cancelled, which may have ended in any order."""
MANY_CANCELLED = 5
ORDERS_AT_TURNS = (*range(12), *range(12, 72, 2))
"""Orders that are tried with a request before and after each of the turns near it. Those of even seeds stay near: what happens
at once is later by far less than a step takes."""


LATER = 1e-5
"""Seconds by which a call that was cancelled would have ended later than it says."""


class Disagreement(AssertionError):
    """A durable run that no uninterrupted play explains."""


class Plays:
    """The plays of one program. The same play is not played twice: it depends on nothing but what it is asked for."""

    def __init__(self, program: Program, seed: int = 0) -> None:
        self.program = program
        self.seed = seed
        self._in_kit: dict[Hashable, KitPlay] = {}
        self._plain: dict[Hashable, Play] = {}
        self._agreed: dict[Hashable, KitPlay] = {}

    def in_kit(
        self,
        crashes: Collection[int] = (),
        late: Mapping[int, int] = NEVER_LATE,
        request: EndRequest | None = None,
    ) -> KitPlay:
        """Return the play in the kit."""
        key = _key(crashes, late, request)
        if key not in self._in_kit:
            self._in_kit[key] = play_in_kit(self.program, crashes, late, seed=self.seed, request=request)
        return self._in_kit[key]

    def plain(self, played: KitPlay) -> Play:
        """Return the play without interruption that a play in the kit is compared with."""
        taken, lingered = durations(played.world), lingering(played.world)
        holds = begun_again(played.world)
        absences, end = played.world.absences, played.run.end
        lost = played.run.lost_failures
        known = (frozenset(table.items()) for table in (taken, lingered, holds, lost))
        key = (*known, tuple(absences.spans), end)
        if key not in self._plain:
            self._plain[key] = play(
                self.program,
                seed=self.seed,
                durations=taken,
                lingered=lingered,
                absences=absences,
                holds=holds,
                lost_failures=lost,
                requested=end,
            )
        return self._plain[key]

    def check(
        self,
        crashes: Collection[int] = (),
        late: Mapping[int, int] = NEVER_LATE,
        request: EndRequest | None = None,
    ) -> KitPlay:
        """Return the play in the kit, compared with the play without interruption. Raises Disagreement."""
        key = _key(crashes, late, request)
        if key not in self._agreed:
            played = self.in_kit(crashes, late, request)
            _compare(self.program, played, self.plain(played), crashes, late, request, self.seed)
            self._agreed[key] = played
        return self._agreed[key]


def _key(crashes: Collection[int], late: Mapping[int, int], request: EndRequest | None) -> Hashable:
    return frozenset(crashes), frozenset(late.items()), request


def check(
    program: Program,
    crashes: Collection[int] = (),
    late: Mapping[int, int] = NEVER_LATE,
    *,
    seed: int = 0,
    request: EndRequest | None = None,
) -> KitPlay:
    """Play a program in the kit, crashed at these points, late after these suspensions and asked to end as `request` says, and
    without interruption. Return the former. Raises Disagreement."""
    return Plays(program, seed).check(crashes, late, request)


def _compare(
    program: Program,
    played: KitPlay,
    plain: Play,
    crashes: Collection[int],
    late: Mapping[int, int],
    request: EndRequest | None,
    seed: int,
) -> None:
    """Raise Disagreement for a run that no play without interruption explains."""
    taken = durations(played.world)
    wrong = by_itself(played) or differences(played, plain)
    if wrong and not by_itself(played) and explained(program, played, taken):
        wrong = []
    if wrong:
        run = played.run
        crashed = (
            f"crashed {', '.join(run.crashed_at)} ({sorted(crashes)})" if run.crashed_at else "not crashed"
        )
        if played.world.absences.spans:
            crashed += f", late {dict(late)}: {played.world.absences.spans}"
        if request is not None:
            crashed += f", {request}: {played.run.end}"
        raise Disagreement("\n".join((*wrong, crashed, f"seed {seed}", repr(program))))


def check_ended(
    program: Program,
    points: Collection[int],
    ends: Collection[EndPoint],
    late: Mapping[int, int] = NEVER_LATE,
    *,
    seed: int = 0,
) -> None:
    """Check a program that is asked to end at each of `ends`: uninterrupted, crashed at these points (those that it has), and
    also with attempts that begin late."""
    _check_ended(Plays(program, seed), points, ends, late)


def _check_ended(
    plays: Plays, points: Collection[int], ends: Collection[EndPoint], late: Mapping[int, int]
) -> None:
    moments = plays.in_kit().moments()
    for end in ends:
        request = end.of(moments)
        run = plays.check(request=request).run
        crashes = sorted({point % (2 * run.commits) for point in points} if run.commits else ())
        if crashes:
            plays.check(crashes, request=request)
        if late and (suspensions := run.memory.suspensions):
            lateness = {nth % suspensions: days for nth, days in late.items()}
            plays.check(crashes, lateness, request)


def check_crashed(
    program: Program,
    points: Collection[int],
    late: Mapping[int, int] = NEVER_LATE,
    ends: Collection[EndPoint] = (),
    *,
    seed: int = 0,
) -> None:
    """Check a program uninterrupted, crashed at each of these points (those that it has), and at all of them in one run. Then
    check it with attempts that begin late, without a crash and with all of them, and asked to end at each of `ends`. Reject a
    program whose tasks wait for each other, and for nothing that could let them go on."""
    plays = Plays(program, seed)
    if program.cancelled is None and ends:
        _check_ended(plays, points, ends, late)
    played = plays.check()
    if played.outcome == ("stuck",):
        reject()
    commits = played.run.commits
    crashes = sorted({point % (2 * commits) for point in points}) if commits else []
    for point in crashes:
        plays.check((point,))
    if len(crashes) > 1:
        plays.check(crashes)
    if late and (suspensions := played.run.memory.suspensions):
        late = {nth % suspensions: days for nth, days in late.items()}
        plays.check((), late)
        if crashes:
            plays.check(crashes, late)


def explained(program: Program, played: KitPlay, taken: dict[tuple[str, int], float]) -> bool:
    """Return whether another order of what happens at once leads to the same."""
    anew = durations(played.world, anew=True)
    absences = [played.world.absences]
    if absences[0].spans:
        absences.append(absences[0].begun_earlier(SETTLED))
    end = played.run.end
    holds: list[tuple[Cuts, Unbegun | None]] = [(begun_again(played.world), None)]
    lost = None
    if end is not None and played.run.crashed_at:
        holds.append((begun_again(played.world, lost=True), None))
        lost = played.run.lost_end
        if lost is not None and lost.crashed < end.instant - NEAR:
            lost = None
        if lost is not None:
            unbegun = Unbegun(lost.crashed, frozenset(calls_made(played.world)))
            holds += [(begins, unbegun) for begins, _ in holds]
    hearings = heard(program, played.world, end)
    cancelled = sum(call.cancelled for call in played.world.calls)
    orders = range(ORDERS if cancelled < MANY_CANCELLED else ORDERS_OF_MANY)
    tries: list[tuple[Sequence[int], bool]] = [(orders, False)]
    # Most likely another turn explains it.
    if absences[0].spans or lost is not None or (end is not None and end.at_turn):
        tries = [((), False), ((), True), (orders, False), (ORDERS_AT_TURNS, True)]
    for seeds, at_turns in tries:
        for spans, (begins, never), hearing in product(absences, holds, hearings):
            known = partial(
                play,
                program,
                absences=spans,
                holds=begins,
                unbegun=never,
                heard=hearing,
                lingered=lingering(played.world),
                lost_failures=played.run.lost_failures,
            )
            for as_played in _orders(known, taken, anew, seeds=seeds):
                plays = _asked(as_played, end, spans, lost, at_turns=at_turns)
                if any(not differences(played, plain) for plain in plays):
                    return True
    return False


def _orders(
    as_played: Callable[..., Play], *taken: dict[tuple[str, int], float], seeds: Sequence[int]
) -> Iterator[Callable[..., Play]]:
    """Yield the plays with these durations of calls: in the order of their instants, and in the orders of these seeds of what
    happens at once."""
    yield partial(as_played, durations=taken[-1])
    different = [known for nth, known in enumerate(taken) if known not in taken[:nth]]
    for seed in seeds:
        for known in (*different, None):
            yield partial(as_played, seed=seed, durations=known, shuffled=True)


def _asked(
    as_played: Callable[..., Play],
    end: RequestedEnd | None,
    absences: Absences,
    lost: LostEnd | None,
    *,
    at_turns: bool,
) -> Iterator[Play]:
    """Yield the play that is asked to end at the instant of the run, and is absent as the run was; `at_turns`: before and after
    each of the turns near these instants, and near the last commit before a crash that `lost` what was told."""
    if not at_turns:
        yield as_played(requested=end)
        return
    ticks: list[float] = []
    as_played(requested=None if end is None else end.later(), ticks=ticks)
    for begun in absences.begun_between(ticks, SETTLED):
        yield as_played(requested=end, absences=begun)
    if end is not None and end.at_turn:
        for near in end.between(ticks, absences):
            yield as_played(requested=near)
    if end is not None and lost is not None:
        for earlier in end.before_lost(ticks, lost):
            yield as_played(requested=earlier)


def by_itself(played: KitPlay) -> list[str]:
    """Return what is wrong with a durable run, whatever else it is compared with."""
    wrong = list(played.world.wrong)
    if played.outcome[0] == "broken":
        wrong.append(f"the run is {played.outcome}")
    if not played.is_cut:  # what a run waits for ends by itself as long as it has time to clean up
        wrong += [
            f"{call.place} ended after {call.lingered}" for call in played.world.calls if call.is_cut_short
        ]
    if played.outcome[0] != "stuck" and not played.is_cut:
        wrong += [f"{key} goes on" for key, child in played.run.memory.children.items() if not child.ended]
    return wrong


def differences(played: Play, plain: Play, *, is_late: bool = False) -> list[str]:
    """Return where a durable run is not what a plain play is. What a crash made late may wait for a signal that never comes, in
    both: nothing else is compared then. `is_late`: the run may be late anywhere, so the begins of its calls are not compared."""
    if played.outcome == plain.outcome == ("stuck",):
        return []
    wrong = []
    if played.failures != plain.failures:
        wrong.append(f"attempts that failed: {played.failures}, plain: {plain.failures}")
    reasons, plain_reasons = played.world.reasons, plain.world.reasons
    wrong += [
        f"told at {place}: {reasons[place]}, plain: {plain_reasons[place]}"
        for place in sorted(reasons.keys() & plain_reasons.keys())
        if reasons[place] != plain_reasons[place]
    ]
    if played.outcome != plain.outcome:
        wrong.append(f"outcome: {played.outcome}, plain: {plain.outcome}")
    for what, mine, other in (
        ("calls", played.world.calls, plain.world.calls),
        ("undos", played.world.undone, plain.world.undone),
    ):
        recorded, expected = ended(mine), ended(other)
        wrong += [
            f"{what} of {place}: {recorded[place]} recorded, plain: {expected[place]}"
            for place in sorted(recorded.keys() | expected.keys())
            if place not in plain.loose and recorded[place] != expected[place]
        ]
    children = played.world.children
    wrong += [
        f"children of {place}: {children[place]}, plain: {plain.world.children[place]}"
        for place in sorted(children.keys() | plain.world.children.keys())
        if place not in plain.loose and children[place] != plain.world.children[place]
    ]
    if order(played.world) != order(plain.world):
        wrong.append(f"undone: {order(played.world)}, plain: {order(plain.world)}")
    wrong += [
        f"call of {place} began at {begin}, plain: {expected_begin}"
        for place, (begin, expected_begin) in begins_apart(played.world, plain.world).items()
        if place not in plain.loose and not is_late and not played.world.absences.spans
    ]
    for place in played.world.times.keys() & plain.world.times.keys():
        apart = abs((played.world.times[place] - plain.world.times[place]).total_seconds())
        if place not in plain.loose and apart > 3 * LOOK:
            wrong.append(f"now at {place}: {played.world.times[place]}, plain: {plain.world.times[place]}")
    if played.outcome[0] == "completed":
        wrong += [
            f"state {place}: {played.state.get(place)}, plain: {plain.state.get(place)}"
            for place in sorted(played.state.keys() | plain.state.keys())
            if place not in plain.loose and played.state.get(place) != plain.state.get(place)
        ]
    return wrong


def ended(calls: list[Call]) -> Counter[str]:
    """Return how many calls of each place are recorded."""
    return Counter(call.place for call in calls if call.recorded)


def begins_apart(mine: World, other: World) -> dict[str, tuple[float, float]]:
    """Return the begin of the last recorded call of each place that began much earlier or later in one of two worlds."""
    begins = [{call.place: call.began for call in world.calls if call.recorded} for world in (mine, other)]
    pairs = {place: (begins[0][place], begins[1][place]) for place in begins[0].keys() & begins[1].keys()}
    return {place: pair for place, pair in pairs.items() if abs(pair[0] - pair[1]) > 3 * LOOK}


def order(world: World) -> list[str]:
    """Return the compensations in the order in which they were recorded."""
    return [call.place for call in world.undone if call.recorded]


def durations(world: World, *, anew: bool = False) -> dict[tuple[str, int], float]:
    """Return how long each recorded call took, with the calls before it that were cancelled; `anew`: without these, where the
    attempt after a failure begins them anew."""
    taken: dict[tuple[str, int], float] = {}
    began: dict[str, float] = {}
    last: dict[str, Call] = {}
    for call in (*world.calls, *world.undone):
        begin = began.setdefault(call.place, call.began)
        last[call.place] = call
        if call.cut or (call.cancelled and anew):
            del began[call.place]
        if call.recorded and call.ended is not None:
            number = sum(1 for place, _ in taken if place == call.place)
            taken[call.place, number] = call.ended - begin
            del began[call.place]
    for place, begin in began.items():  # what was never recorded was cancelled before it could end
        number = sum(1 for other, _ in taken if other == place)
        call = last[place]
        taken[place, number] = call.began + call.duration - begin + LATER
    return taken


def lingering(world: World) -> dict[tuple[str, int], float]:
    """Return how long the calls, the nth of their step, went on that were cancelled."""
    lingered: dict[tuple[str, int], float] = {}
    ended_calls: Counter[str] = Counter()
    for call in world.calls:
        if call.lingered is not None:
            lingered[call.place, ended_calls[call.place]] = call.lingered
        ended_calls[call.place] += call.recorded
    return lingered


def heard(program: Program, world: World, end: RequestedEnd | None = None) -> list[dict[str, float]]:
    """Return when the signals were heard, before and after all else that was told at the same instant: a look that a sleep or a
    deadline makes tells a signal first. The last play is one that hears each signal at once. The run may have been asked to end
    before the look that would have read a signal: each play then also comes as one that does not hear it before the end, where it
    is not waited for so long that a look has to have read it."""
    sent = {value: instant for instant, _, value in program.signals()}
    hearings: list[dict[str, float]] = [{}]
    if any(instant >= sent[value] + NEAR for value, instant in world.heard.items()):
        hearings = [
            {value: instant + apart for value, instant in world.heard.items()} for apart in (-NEAR, NEAR)
        ] + hearings
    unread = {
        value: end.instant + GRACE
        for value, instant in sent.items()
        if end is not None and value not in world.heard and instant < end.instant
    }
    return hearings + ([hearing | unread for hearing in hearings] if unread else [])


def calls_made(world: World) -> Iterator[tuple[str, int]]:
    """Yield the calls, the nth of their step, that were made."""
    ended_calls: Counter[str] = Counter()
    for call in world.calls:
        yield call.place, ended_calls[call.place]
        ended_calls[call.place] += call.recorded


def begun_again(world: World, *, lost: bool = False) -> Cuts:
    """Return when the calls, the nth of their step or compensation, were made again that a crash cut off. `lost`: the crash lost
    the records of cancelled calls too, and the next attempt is told the end before it makes these calls."""
    begins: Cuts = {}
    ended_calls: Counter[str] = Counter()
    for call in (*world.calls, *world.undone):
        key = call.place, ended_calls[call.place]
        _, begin, earlier = begins.get(key, (0, 0.0, call.failures))
        if call.cut or (lost and call.cancelled):
            begins[key] = 0, NEVER, earlier
        elif begin == NEVER:
            begins[key] = call.failures, call.began - call.resumed, earlier
        ended_calls[call.place] += call.recorded
    return begins
