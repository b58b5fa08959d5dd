"""Hypothesis strategies of programs. What is drawn first is what is shrunk to.

What many programs draw from is cached: hypothesis validates each new strategy, which takes longer than to draw from it. But
`st.one_of` takes the same strategy once, however often it is named: those that are more likely are made anew there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from typing import Any, Literal

from hypothesis import strategies as st

from penstock import DurableContext
from tests.durable_programs import statements as s
from tests.durable_programs.end_requests import EndPoint
from tests.durable_programs.statements import ALWAYS, Program, Statement

Statements = st.SearchStrategy[Statement]
Draw = Callable[[st.SearchStrategy[Any]], Any]
Kind = Literal["once", "again"]
"""The programs of a single attempt (`once`), and those of several attempts (`again`). The plain play repeats a failed step at
once, without a further attempt. So in programs of several attempts no step takes hours, and a cleanup takes no time."""
DEPTH = 3
TASKS = 3
HAS_FIRST = hasattr(DurableContext, "first")

names = st.sampled_from(("a", "b"))
few = st.integers(0, 2)


@st.composite
def steps(draw: Draw, kind: Kind, *, delayed: bool = True) -> s.Step:
    """Most steps succeed at once. Others fail within their tries, more often, or always. `delayed`: some wait for days between
    two tries."""
    plan = draw(st.integers(0, 9))
    tries = draw(st.integers(1, 3)) if plan > 4 else 1
    fails = 0 if plan < 5 else draw(st.integers(1, 2)) if plan < 9 else ALWAYS
    return s.Step(
        draw(names),
        fails,
        tries,
        delay=draw(few) if plan == 8 and delayed else 0,
        hours=draw(st.integers(0, 30)) if kind == "once" and plan == 4 else 0,
        yields=draw(st.integers(0, 3)),
        retryable=plan != 7,
    )


signals = st.sampled_from(("go", "stop"))
sent_signals = st.lists(st.tuples(signals, st.integers(0, 4)), max_size=4).map(tuple)


@st.composite
def hearings(draw: Draw) -> Statement:
    """Draw a step of hours, during which a signal may be sent, and the wait for it: after the step, or beside it."""
    step, signal = s.Step(draw(names), hours=draw(st.integers(20, 90))), draw(signals)
    if draw(st.booleans()):
        return s.Branches("gather", (step, s.Block((s.Signal(signal, timeout=3), s.Step()))))
    return s.Block((step, s.Signal(signal, draw(st.integers(0, 1)))))


@st.composite
def interrupted_children(draw: Draw) -> s.Try:
    """Draw a child that runs when a step beside it fails, and a step that the function calls before it fails, too."""
    fails = s.Block((s.Sleep(), s.Step(fails=draw(st.sampled_from((1, 2, ALWAYS))))))
    child = s.Child(draw(st.booleans()), days=draw(st.integers(1, 3)))
    kind = draw(st.sampled_from(("group", "group", "gather")))
    return s.Try("again", s.Branches(kind, (fails, child)), s.Block((s.Step("b"),)))


@st.composite
def reminders(draw: Draw) -> s.Block:
    """A wait for a signal with a deadline, and another wait for the signal that may come after it."""
    name = draw(signals)
    return s.Block((s.Signal(name, 1), s.Signal(name, draw(st.one_of(st.integers(1, 3), st.none())))))


@st.composite
def compensated(draw: Draw, kind: Kind) -> s.Block:
    """Branches that register compensations in an order of their own, and a step after them that fails."""
    count = draw(st.integers(2, 3))
    undos = tuple(s.Block((*draw(before_undo(kind)), s.Undo())) for _ in range(count))
    return s.Block((s.Branches(draw(kinds), undos), s.Step(fails=ALWAYS)))


@cache
def before_undo(kind: Kind) -> st.SearchStrategy[tuple[Statement, ...]]:
    return several(steps(kind) if kind == "again" else st.one_of(steps(kind), steps(kind), waits()), 0, 1)


@st.composite
def waits(draw: Draw) -> Statement:
    days = draw(st.integers(1, 3))
    match draw(st.integers(0, 6)):
        case 0 | 1 | 2:
            return s.Sleep(days)
        case 3 | 4:
            timeout = draw(st.one_of(st.integers(0, 3), st.none()))
            return s.Signal(draw(signals), timeout, draw(st.integers(1, 3)))
        case 5:
            return s.Child(fails=draw(st.integers(0, 3)) == 3, days=days)
        case _:
            return s.Wait(draw(st.booleans()), draw(st.one_of(st.integers(0, 3), st.none())), days)


@st.composite
def others(draw: Draw, kind: Kind) -> Statement:
    match draw(st.integers(0, 9)):
        case 0 | 1 | 2:
            return s.Block((*draw(several_steps(kind, 0, 1)), s.Undo()))
        case 3 | 4 | 5:
            return s.Child(fails=draw(st.integers(0, 3)) == 3)
        case 6:
            return s.Child(items=draw(st.integers(0, 3)), concurrency=draw(st.integers(1, 3)))
        case 7 | 8:
            return s.Value(draw(st.sampled_from(("uuid", "random", "now", "set", "version"))))
        case _:
            return s.Raise(draw(st.booleans()))


@cache
def leaf(kind: Kind) -> Statements:
    last = interrupted_children() if kind == "again" else hearings()
    return st.one_of(
        steps(kind), steps(kind), steps(kind), waits(), reminders(), others(kind), others(kind), last
    )


@cache
def several(part: Statements, least: int = 1, most: int = 3) -> st.SearchStrategy[tuple[Statement, ...]]:
    return st.lists(part, min_size=least, max_size=most).map(tuple)


@cache
def several_steps(kind: Kind, least: int = 1, most: int = 3) -> st.SearchStrategy[tuple[Statement, ...]]:
    return several(steps(kind), least, most)


@st.composite
def pipelines(draw: Draw, kind: Kind, depth: int) -> s.Block:
    """Tasks that are made early and awaited late, perhaps by other tasks."""
    parts = body(kind, depth)
    count = draw(st.integers(1, TASKS))
    started = [s.Start(task, draw(parts)) for task in range(count)]
    late = [
        s.Block((s.Await(task, draw(st.integers(0, 7)) == 7), *draw(several(parts, 0, 2))))
        for task in range(count)
    ]
    if draw(st.booleans()):
        late.reverse()
    between = draw(several(parts, 0, 1))
    end = (s.Branches(draw(kinds), tuple(late)),) if draw(st.booleans()) else tuple(late)
    return s.Block((*started, *between, *end))


kinds = st.sampled_from(("gather", "gather", "gather", "group", "collect", "lock", "semaphore", "latch"))


@st.composite
def branches(draw: Draw, kind: Kind, depth: int) -> s.Branches:
    if draw(st.integers(0, 7)) == 7:
        return s.Branches("bare", draw(several_steps(kind, 2)))
    return s.Branches(draw(kinds), draw(several(body(kind, depth), 2, 4)))


@st.composite
def tries(draw: Draw, kind: Kind, depth: int) -> s.Try:
    how = draw(st.sampled_from(("except", "star", "again", "wrap", "context", "hide", "finally")))
    return s.Try(how, draw(body(kind, depth)), draw(handlers(kind, depth)))


@cache
def handlers(kind: Kind, depth: int) -> Statements:
    if kind == "once":
        return body(kind, depth)
    quick = st.one_of(steps(kind, delayed=False), others(kind))
    return several(quick, 0, 2).map(s.Block)


@st.composite
def races(draw: Draw, kind: Kind, depth: int) -> Statement:
    part = body(kind, depth)
    if draw(st.booleans()):
        return s.Timeout(draw(st.integers(1, 3)), draw(part))
    return s.First(draw(arms(part)))


@cache
def arms(part: Statements) -> st.SearchStrategy[tuple[tuple[int, Statement], ...]]:
    return st.lists(st.tuples(st.integers(1, 3), part), min_size=2, max_size=3).map(tuple)


@cache
def body(kind: Kind, depth: int) -> Statements:
    """A statement with at most so many levels below it."""
    if depth == 0:
        return leaf(kind)
    compound: list[Statements] = [
        several(body(kind, depth - 1)).map(s.Block),
        branches(kind, depth - 1),
        branches(kind, depth - 1),
        pipelines(kind, depth - 1),
        st.builds(s.Workers, st.integers(1, 3), st.integers(0, 4), body(kind, depth - 1)),
        tries(kind, depth - 1),
        compensated(kind),
    ]
    if HAS_FIRST:
        compound.append(races(kind, depth - 1))
    return st.one_of(leaf(kind), leaf(kind), *compound)


@st.composite
def programs(draw: Draw, depth: int = DEPTH, only: Kind | None = None) -> Program:
    """Draw a program of this kind; by default two thirds are played in one attempt."""
    kind: Kind = "again" if draw(st.integers(0, 2)) == 2 else "once"
    kind = only or kind
    root = s.Block(draw(several(body(kind, depth), 1, 4)))
    cancelled = draw(st.integers(0, 11)) == 11
    return Program(
        root,
        attempts=1 if kind == "once" else draw(st.integers(2, 5)),
        sent=draw(sent_signals),
        cancelled=draw(st.integers(1, 3)) if cancelled else None,
    )


@st.composite
def asked_programs(draw: Draw, depth: int = DEPTH, only: Kind | None = None) -> Program:
    """Draw a program that hardly obeys when it is asked to end. Its functions hang or go on for a while. Its branches catch the
    cancellation and do something else. It registers a compensation first, which says whether the run was undone. In some, a step
    fails while others run."""
    program: Program = draw(programs(depth, only))
    parts = [_disobedient(draw, program.body)]
    if draw(st.integers(0, 3)) == 3:
        parts.insert(draw(st.integers(0, 1)), _disobedient(draw, draw(failures_beside_steps())))
    return replace(program, body=s.Block((s.Undo(), *parts)), cancelled=None)


@st.composite
def failures_beside_steps(draw: Draw) -> s.Branches:
    """A step that fails while other steps run, which end later."""
    fails = s.Step(fails=draw(st.sampled_from((ALWAYS, 1, 2))))
    others = [s.Step(draw(names), yields=draw(st.integers(1, 3))) for _ in range(draw(st.integers(1, 2)))]
    return s.Branches(draw(st.sampled_from(("gather", "gather", "collect", "bare"))), (fails, *others))


def _disobedient(draw: Draw, statement: Any, *, bare: bool = False) -> Any:
    """Return a statement that hardly obeys when the run is asked to end. `bare`: it has to be a step."""
    match statement:
        case s.Step():
            deaf = draw(st.sampled_from((0.0, 0.0, 0.4, 15.0)))
            statement = replace(statement, hangs=draw(st.integers(0, 2)) == 2, deaf=deaf)
        case s.Undo():
            return replace(statement, hangs=draw(st.integers(0, 7)) == 7)
        case s.Try(kind=("except" | "again" | "finally") as kind):
            changed = draw(st.sampled_from(("obey", "stay", "refuse", kind)))
            statement = _with_disobedient_parts(draw, replace(statement, kind=changed))
        case _:
            statement = _with_disobedient_parts(draw, statement)
    if bare or draw(st.integers(0, 9)) < 9:
        return statement
    handler = draw(st.sampled_from((s.Block(), s.Undo(), s.Step("b"), s.Step(fails=ALWAYS), s.Sleep())))
    return s.Try(draw(st.sampled_from(("obey", "stay", "refuse"))), statement, handler)


def _with_disobedient_parts(draw: Draw, statement: Statement) -> Statement:
    """Return the statement, each part of which hardly obeys."""
    bare = isinstance(statement, s.Branches) and statement.kind == "bare"

    def changed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(changed(part) for part in value)
        return _disobedient(draw, value, bare=bare) if isinstance(value, Statement) else value

    parts = {part.name: changed(getattr(statement, part.name)) for part in fields(statement)}
    return replace(statement, **parts)


late_attempts = st.dictionaries(st.integers(0, 4), st.integers(1, 6), min_size=1, max_size=3)
"""For how many days after which suspension no worker has time for the run."""
crash_points = st.lists(st.one_of(st.integers(0, 40), st.integers(-8, -1)), max_size=3, unique=True)
"""Commits from the beginning, and from the end, where compensations are."""
ends = st.lists(
    st.builds(
        EndPoint,
        at=st.sampled_from(("gap", "commit", "failure", "pause", "undo")),
        nth=st.integers(0, 40),
        share=st.sampled_from((0.5, 0.1, 0.9)),
        turns=st.integers(0, 14),
        again=st.one_of(st.none(), st.none(), st.none(), st.floats(0.01, 5)),
        ends_as=st.sampled_from(("cancelled", "timeout")),
    ),
    min_size=1,
    max_size=2,
)
"""When the end of a run is requested, in runs of their own."""
