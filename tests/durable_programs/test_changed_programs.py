"""Runs that go on with other code than they began with: each result belongs to the call that gets it, or the run stops.

A program is a list of statements. A run begins with it, changes to a program that differs in a place, and perhaps back, each time
at a crash or at a wait. The oracle is the code that the run ended with: this code asks for what was called and undone.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from penstock import DurableContext, action
from penstock.errors import ExecutionFailed
from penstock.testing import DurableRun

NAMES = ("a", "b", "c")
KINDS = ("step", "step", "step", "run", "call", "signal", "sleep", "now", "undo", "both")
CODES = 8
CHANGES_OF_CODE = 4


@dataclass(frozen=True)
class Statement:
    """`both` runs the statements of two branches at the same time. `run` runs the same action under different names, and `call`
    different actions under the same name."""

    kind: str
    name: str
    arms: tuple[tuple[Statement, ...], ...] = ()

    def __str__(self) -> str:
        arms = " | ".join(" ".join(map(str, arm)) for arm in self.arms)
        return f"{self.kind} {self.name}" if not self.arms else f"({arms})"


@dataclass(frozen=True)
class Code:
    """The statements of a function, and whether it fails after them."""

    statements: tuple[Statement, ...]
    fails: bool

    def __str__(self) -> str:
        return ", ".join(map(str, self.statements)) + (", fail" if self.fails else "")


@dataclass
class Played:
    """The calls of a run, in all attempts, and those that the last attempt asked for."""

    code: Code
    called: Counter[str] = field(default_factory=Counter)
    undone: list[str] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    registered: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


NOW: ContextVar[Played] = ContextVar("now")


def call(name: str) -> str:
    NOW.get().called[name] += 1
    return name


def undo_a(label: str) -> None:
    NOW.get().undone.append(label)


def undo_b(label: str) -> None:
    NOW.get().undone.append(label)


def undo_c(label: str) -> None:
    NOW.get().undone.append(label)


UNDOS = {"a": undo_a, "b": undo_b, "c": undo_c}


@action(pack="changed")
async def child(name: str) -> str:
    return call(f"run {name}")


@action(pack="changed")
async def child_a() -> str:
    return call("call a")


@action(pack="changed")
async def child_b() -> str:
    return call("call b")


@action(pack="changed")
async def child_c() -> str:
    return call("call c")


CHILDREN = {"a": child_a, "b": child_b, "c": child_c}


@action(pack="changed")
async def function(ctx: DurableContext) -> str:
    played = NOW.get()
    played.asked.clear()
    played.registered.clear()
    code = played.code
    await run_all(ctx, code.statements)
    if code.fails:
        raise ValueError("it fails")
    return "ended"


async def run_all(ctx: DurableContext, statements: tuple[Statement, ...]) -> None:
    for statement in statements:
        await run_one(ctx, statement)


async def run_one(ctx: DurableContext, statement: Statement) -> None:
    played, name = NOW.get(), statement.name
    wanted = f"{statement.kind} {name}"
    match statement.kind:
        case "step":
            result = await ctx.step(name, call, wanted)
        case "run":
            result = await ctx.run(child, {"name": name}, name=name)
        case "call":
            result = await ctx.run(CHILDREN[name], name="call")
        case "signal":
            result = f"{await ctx.signal(name)}"
        case "sleep":
            await ctx.sleep("1d")
            return
        case "now":
            ctx.now()
            return
        case "undo":
            label = f"{name} after {played.asked.total()} results"
            ctx.on_failure(UNDOS[name], label)
            played.registered.append(label)
            return
        case _:
            await asyncio.gather(*(run_all(ctx, arm) for arm in statement.arms))
            return
    played.asked[wanted] += 1
    if result != wanted:
        played.wrong.append(f"{wanted} got {result}")


class ChangedRun(DurableRun):
    """A run whose code changes with each attempt, as `codes` say; the last one stays."""

    def __init__(self, codes: list[Code], crash_at: int | None) -> None:
        super().__init__(crash_at=crash_at)
        self.codes = codes

    async def _attempt(self, *args: Any) -> Any:
        NOW.get().code = self.codes[min(self.attempts, len(self.codes)) - 1]
        return await super()._attempt(*args)


def made(dice: random.Random, size: int, depth: int = 1) -> tuple[Statement, ...]:
    return tuple(statement(dice, depth) for _ in range(size))


def statement(dice: random.Random, depth: int) -> Statement:
    kind, name = dice.choice(KINDS if depth else KINDS[:-1]), dice.choice(NAMES)
    if kind == "both":
        return Statement(kind, "", arms=(made(dice, 2, 0), made(dice, dice.randint(0, 2), 0)))
    return Statement(kind, name)


def changed(dice: random.Random, code: Code) -> Code:
    """Return a code that differs in a place: a statement more, less, renamed, of another kind, moved, or in a branch."""
    statements = list(code.statements)
    place = dice.randrange(len(statements))
    match dice.randrange(6):
        case 0:
            statements.insert(place, statement(dice, 1))
        case 1:
            del statements[place]
        case 2:
            statements[place] = replace(statements[place], name=dice.choice(NAMES))
        case 3:
            statements[place] = statement(dice, 1)
        case 4:
            statements.insert(dice.randrange(len(statements)), statements.pop(place))
        case _:
            statements[place] = Statement("both", "", arms=((statements[place],), made(dice, 1, 0)))
    return Code(tuple(statements), code.fails if dice.random() < 0.8 else not code.fails)


async def play(codes: list[Code], crash_at: int | None) -> tuple[Played, ChangedRun, str]:
    """Run the codes one after the other. Return the calls, and the error with which the run failed, or an empty text."""
    played = Played(codes[0])
    NOW.set(played)
    run = ChangedRun(codes, crash_at)
    for name in NAMES:
        for _ in range(12):
            run.signal(name, f"signal {name}")
    try:
        await run(function)
    except ExecutionFailed as error:
        return played, run, str(error)
    return played, run, ""


def faults(played: Played, error: str, crashed: str) -> list[str]:
    """Return what the ended run did that its last code does not say. Calls whose records the crash
    has prevented are forgiven: one, or that of each branch."""
    problems = list(played.wrong)
    if "ReplayMismatch" in error:
        return problems
    lost = 2 if crashed.startswith("before") or re.search(r" \d+/", crashed) else 0
    asked = Counter({name: count for name, count in played.asked.items() if not name.startswith("signal")})
    if asked - played.called or (played.called - asked).total() > lost:
        problems.append(f"called {dict(played.called)}, asked for {dict(asked)}")
    undone, registered = played.undone, played.registered[::-1] if "ValueError" in error else []
    if undone != registered and not (
        lost and any(undone[:n] + undone[n + 1 :] == registered for n in range(len(undone)))
    ):
        problems.append(f"undone {undone}, registered {played.registered}")
    return problems


@pytest.mark.parametrize("seed", range(CODES))
def test_changed_code_gets_its_own_results_or_stops(seed: int) -> None:
    dice = random.Random(seed)
    old = Code(made(dice, dice.randint(3, 7)), dice.random() < 0.5)
    for _ in range(CHANGES_OF_CODE):
        check(old, changed(dice, old))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("signal a, now b, step a, step a, fail", "signal a, now b, undo a, step a, fail"),
        ("step b, step b, undo b, run a, fail", "step b, step b, undo b, run a"),
        ("step b, undo b, run a, fail", "step b, run a, fail"),
    ],
)
def test_changed_code_that_fails_or_undoes_otherwise_stops(old: str, new: str) -> None:
    check(read(old), read(new))


def test_changed_code_that_runs_another_action_under_a_name_stops() -> None:
    check(read("step a, call a, call b, step b"), read("step a, call b, call b, step b"))


def read(text: str) -> Code:
    """Return the code of a text such as `step a, undo b, fail`, without branches."""
    parts = text.split(", ")
    fails = parts[-1] == "fail"
    words = [part.split() for part in (parts[:-1] if fails else parts)]
    return Code(tuple(Statement(kind, name) for kind, name in words), fails)


def check(old: Code, new: Code) -> None:
    """Play runs that crash at each commit and go on with the new code, and perhaps back with the old one."""
    first = asyncio.run(play([old], None))
    assert not faults(first[0], first[2], ""), old
    for crash_at in range(2 * first[1].commits):
        for codes in ([old, new], [old, new, old]):
            played, run, error = asyncio.run(play(codes, crash_at))
            problems = faults(played, error, run.crashed)
            assert not problems, (
                f"{codes[0]} -> {codes[1]} ({len(codes)}), {run.crashed}: {error}: {problems}"
            )
