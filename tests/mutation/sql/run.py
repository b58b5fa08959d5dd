"""Runs the mutants of the functions: one PostgreSQL, this process with all tests imported, a fork of it for each mutant."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock.store.schema import functions
from tests.mutation.postgres import Migrated, migrated
from tests.mutation.sql import measure, trial
from tests.mutation.sql.measure import Measured
from tests.mutation.sql.operators import Mutant, mutants
from tests.mutation.verdicts import KILLED, REFUSED, SURVIVED, Verdict, read, write

LANES = 2
SECONDS = 15.0
"""Of tests, by the time that they took: how long a mutant is looked at before it counts as survived, unless `seconds=` says
otherwise. The verdict says how many of the tests that call the function that were."""
PATIENCE = 60.0
RACES = ("tests/interleavings/", "race")
"""Which tests can see what a lock is for; they come first there."""
NARROW = 16
"""Functions that a test calls which is about one of them: such tests come first."""
INSTALLATIONS = ("tests/flows/", "tests/security/", "tests/penstock/cli/")
"""Tests of these wait for long for what a mutant does not do: they come last."""


@dataclass
class Killers:
    """The tests to try on a function."""

    tests: Sequence[Measured]
    seconds: float
    lanes: int
    found: Counter[str] = field(default_factory=Counter)

    def note(self, verdict: Verdict) -> None:
        if verdict.verdict == KILLED:
            self.found.update((verdict.by, verdict.by.partition("::")[0]))

    def of(self, mutant: Mutant, before: str) -> list[Measured]:
        """Return as many tests as there is time for, in this order. First the test that found this mutant before, then those
        that call little else. Then those that found others of the function, and those beside them, and those that are named
        after its effect. Then the quickest of each file in turn, as tests of a file are alike."""
        calling = sorted(
            (one for one in self.tests if mutant.function in one.calls),
            key=lambda one: one.seconds * len(one.calls),
        )
        races = mutant.kind in ("lock", "swap", "order")
        words = [word[:5] for word in mutant.function.split("_") if word != "executions"]
        of_file: Counter[str] = Counter()

        def place(one: Measured) -> tuple[bool, bool, bool, bool, int, int]:
            file = one.test.partition("::")[0]
            of_file[file] += 1
            named = sum(word in one.test for word in words)
            race = races and any(word in one.test for word in RACES)
            whole = one.test.startswith(INSTALLATIONS)
            return (
                one.test != before,
                not race,
                whole,
                len(one.calls) > NARROW,
                -self.found[one.test],
                of_file[file] - 2 * named - min(3, self.found[file]),
            )

        selected: list[Measured] = []
        seconds_left = self.seconds
        for _, one in sorted(((place(one), one) for one in calling), key=lambda pair: pair[0]):
            if one.seconds <= seconds_left:
                selected.append(one)
                seconds_left -= one.seconds
        return selected or calling[:1]


@dataclass
class Fork:
    mutant: Mutant
    pid: int
    answer: int
    until: float
    tests: int

    def ended(self) -> Verdict | None:
        pid, _ = os.waitpid(self.pid, os.WNOHANG)
        if not pid and time.monotonic() < self.until:
            return None
        if not pid:
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            return Verdict(KILLED, "it stood still")
        with os.fdopen(self.answer, "rb") as answer:
            data = answer.read()
        if not data:
            raise RuntimeError(f"no verdict on {self.mutant.name}")
        verdict = pickle.loads(data)
        assert isinstance(verdict, Verdict)
        return verdict


def fork(mutant: Mutant, source: str, tests: Sequence[Measured], home: Migrated) -> Fork:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        until = time.monotonic() + PATIENCE + 4 * sum(test.seconds for test in tests)
        return Fork(mutant, pid, reading, until, len(tests))
    try:
        os.setsid()
        verdict = trial.tried(home, mutant.function, mutant.applied(source), tests)
        os.write(writing, pickle.dumps(verdict))
    except BaseException as error:
        print(f"{mutant.name}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(0)


def judged(
    todo: Sequence[tuple[Mutant, str]], killers: Killers, before: Mapping[str, str], home: Migrated
) -> Iterator[tuple[Mutant, Verdict]]:
    """A verdict on each, as they come. What no test calls survives."""
    waiting, running = list(todo), list[Fork]()
    while waiting or running:
        while waiting and len(running) < killers.lanes:
            mutant, source = waiting.pop(0)
            tests = killers.of(mutant, before.get(mutant.name, ""))
            if not tests:
                yield mutant, Verdict(SURVIVED, "no test calls it")
                continue
            running.append(fork(mutant, source, tests, home))
        for running_fork in list(running):
            if verdict := running_fork.ended():
                running.remove(running_fork)
                if verdict.verdict == SURVIVED:
                    calling = sum(running_fork.mutant.function in test.calls for test in killers.tests)
                    verdict = Verdict(SURVIVED, f"{running_fork.tests} of {calling} tests were run")
                killers.note(verdict)
                yield running_fork.mutant, verdict
        time.sleep(0.02)


class Collected:
    """A plugin of pytest: which tests there are."""

    def __init__(self) -> None:
        self.tests: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.tests.update(item.nodeid for item in session.items)


def warm(tests: Sequence[Measured]) -> list[Measured]:
    """Import every test here, so that no fork has to. Returns those that are still there."""
    files = sorted({test.test.partition("::")[0] for test in tests})
    collected = Collected()
    devnull = os.open(os.devnull, os.O_WRONLY)
    saved = os.dup(1)
    os.dup2(devnull, 1)
    try:
        existing = [file for file in files if Path(file).exists()]
        pytest.main(["--collect-only", "-qqq", *trial.OPTIONS, *existing], plugins=[collected])
    finally:
        os.dup2(saved, 1)
    return [test for test in tests if test.test in collected.tests]


def run(given: Sequence[str]) -> list[str]:
    """Judge the mutants of these subjects or functions, or of all, and write the verdicts as they come. `survivors`: only those
    that lived, or were not judged yet; `new`: only those that were not judged yet; `seconds=60`: of tests for each; `lanes=1`:
    so many at a time. Returns the parts of which there are verdicts now."""
    options = dict(argument.split("=") for argument in given if "=" in argument)
    only = [argument for argument in given if argument not in ("survivors", "new") and "=" not in argument]
    paths = [
        path
        for path in sorted((functions.folder() / "functions").rglob("*.sql"))
        if not only or path.stem in only or path.parent.name in only
    ]
    tests = warm(measure.read())
    gc.freeze()  # What was imported is for no fork to look through, and to copy.
    seconds, lanes = float(options.get("seconds", SECONDS)), int(options.get("lanes", LANES))
    with migrated() as home:
        for path in paths:
            keep = (
                {KILLED, REFUSED}
                if "survivors" in given
                else {KILLED, REFUSED, SURVIVED}
                if "new" in given
                else set[str]()
            )
            one_function(path, Killers(tests, seconds, lanes), home, keep)
    return sorted({part_of(path) for path in paths})


def part_of(path: Path) -> str:
    return f"sql.{path.parent.name}"


def one_function(path: Path, killers: Killers, home: Migrated, keep: Set[str]) -> None:
    source, old_verdicts = path.read_text(), read(part_of(path))
    new_mutants = mutants(path.stem, source)
    other_verdicts = {
        name: one for name, one in old_verdicts.items() if not name.startswith(f"{path.stem}: ")
    }
    dead = {
        one.name: old_verdicts[one.name]
        for one in new_mutants
        if one.name in old_verdicts and old_verdicts[one.name].verdict != SURVIVED
    }
    verdicts = {
        one.name: old_verdicts[one.name]
        for one in new_mutants
        if one.name in old_verdicts and old_verdicts[one.name].verdict in keep
    }
    todo = [(one, source) for one in new_mutants if one.name not in verdicts]
    for verdict in dead.values():
        killers.note(verdict)
    start = time.monotonic()

    def keep_verdicts() -> None:
        write(
            part_of(path),
            other_verdicts
            | {mutant.name: verdicts[mutant.name] for mutant in new_mutants if mutant.name in verdicts},
        )

    keep_verdicts()  # those of mutants that are gone are not kept
    for mutant, verdict in judged(todo, killers, {name: one.by for name, one in dead.items()}, home):
        verdicts[mutant.name] = verdict
        keep_verdicts()
    count = Counter(one.verdict for one in verdicts.values())
    print(f"{path.stem}: {dict(count)} in {time.monotonic() - start:.0f} s", flush=True)
