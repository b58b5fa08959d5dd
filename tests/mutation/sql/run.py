"""Runs the mutants of the functions: one PostgreSQL, this process with all tests imported, a fork of it for each mutant."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store import functions, migrate
from tests.mutation.sql import trial
from tests.mutation.sql.operators import Mutant, mutants
from tests.mutation.verdicts import KILLED, SURVIVED, Verdict, read, write
from tests.servers import choose, databases
from tests.servers.postgres import FAST, Postgres

LANES = 2
SECONDS = 6.0
"""Of tests, by the time that they took: how long a mutant is looked at before it counts as survived."""
PATIENCE = 60.0
MEASURED: Mapping[str, str] = {**FAST, "log_line_prefix": "%d %e ", "log_min_messages": "error", "max_connections": "300"}
RACES = ("tests/interleavings/", "race")
"""Which tests can see what a lock is for; they come first there."""


@dataclass(frozen=True)
class Called:
    """A test: which functions it calls, and how long it takes."""

    test: str
    seconds: float
    calls: frozenset[str]


@dataclass
class Killers:
    """Which tests to try on a function: those that found its other mutants first, then the quickest."""

    tests: Sequence[Called]
    found: Counter[str] = field(default_factory=Counter)

    def of(self, mutant: Mutant, before: str) -> list[Called]:
        races = mutant.kind in ("lock", "swap", "order")

        def place(one: Called) -> tuple[bool, bool, int, float]:
            race = races and any(word in one.test for word in RACES)
            return (one.test != before, not race, -self.found[one.test], one.seconds)

        chosen, left = [], SECONDS
        for one in sorted((one for one in self.tests if mutant.function in one.calls), key=place):
            if left > 0 or not chosen:
                chosen.append(one)
            left -= one.seconds
        return chosen


def measured(file: Path) -> list[Called]:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [Called(line["test"], line["seconds"], frozenset(line["calls"])) for line in lines]


@contextmanager
def server() -> Iterator[tuple[Postgres, Path, str]]:
    """PostgreSQL, its log, and the name of a migrated database."""
    postgres = choose.private_postgres(MEASURED)
    try:
        os.environ["PENSTOCK_TEST_DATABASE_URL"] = postgres.dsn()
        name = databases.new_name()

        async def make() -> None:
            url = await databases.create(postgres, name)
            await migrate.upgrade(Settings(database_url=SecretStr(url)))

        asyncio.run(make())
        yield postgres, postgres._folder / "log", name  # type: ignore[attr-defined]
    finally:
        postgres.close()


@dataclass
class Fork:
    mutant: Mutant
    pid: int
    answer: int
    until: float

    def ended(self) -> Verdict | None:
        pid, _ = os.waitpid(self.pid, os.WNOHANG)
        if not pid and time.monotonic() < self.until:
            return None
        if not pid:
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            return Verdict(KILLED, "it stood still")
        with os.fdopen(self.answer, "rb") as answer:
            said = answer.read()
        if not said:
            raise RuntimeError(f"no verdict on {self.mutant.name}")
        verdict = pickle.loads(said)
        assert isinstance(verdict, Verdict)
        return verdict


def fork(mutant: Mutant, source: str, tests: Sequence[Called], where: tuple[Postgres, Path, str]) -> Fork:
    postgres, log, migrated = where
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Fork(mutant, pid, reading, time.monotonic() + PATIENCE + 4 * sum(one.seconds for one in tests))
    try:
        os.setsid()
        verdict = trial.tried(
            postgres, log, migrated, mutant.function, mutant.applied(source), [one.test for one in tests]
        )
        os.write(writing, pickle.dumps(verdict))
    except BaseException as error:
        print(f"{mutant.name}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(0)


def judged(
    todo: Sequence[tuple[Mutant, str]], killers: Killers, before: Mapping[str, str], where: tuple[Postgres, Path, str]
) -> Iterator[tuple[Mutant, Verdict]]:
    """A verdict on each, as they come. What no test calls survives."""
    waiting, running = list(todo), list[Fork]()
    while waiting or running:
        while waiting and len(running) < LANES:
            mutant, source = waiting.pop(0)
            tests = killers.of(mutant, before.get(mutant.name, ""))
            if not tests:
                yield mutant, Verdict(SURVIVED, "no test calls it")
                continue
            running.append(fork(mutant, source, tests, where))
        for one in list(running):
            if verdict := one.ended():
                running.remove(one)
                killers.found[verdict.by] += verdict.verdict == KILLED
                yield one.mutant, verdict
        time.sleep(0.02)


def warm(tests: Sequence[str]) -> None:
    """Import every test here, so that no fork has to."""
    files = sorted({test.partition("::")[0] for test in tests})
    devnull = os.open(os.devnull, os.O_WRONLY)
    saved = os.dup(1)
    os.dup2(devnull, 1)
    try:
        pytest.main(["--collect-only", "-qqq", *trial.OPTIONS, *files])
    finally:
        os.dup2(saved, 1)


def run(file: Path, only: Sequence[str]) -> None:
    """Judge the mutants of these subjects or functions, and write the verdicts of each function as it is done."""
    called = measured(file)
    warm([one.test for one in called])
    with server() as where:
        for path in sorted((functions.folder() / "functions").rglob("*.sql")):
            if path.stem in only or path.parent.name in only:
                one_function(path, called, where)


def one_function(path: Path, called: Sequence[Called], where: tuple[Postgres, Path, str]) -> None:
    source, part = path.read_text(), f"sql.{path.parent.name}"
    before = {name: verdict.by for name, verdict in read(part).items()}
    made = mutants(path.stem, source)
    begun = time.monotonic()
    verdicts = {mutant.name: verdict for mutant, verdict in judged([(m, source) for m in made], Killers(called), before, where)}
    others = {name: one for name, one in read(part).items() if not name.startswith(f"{path.stem}: ")}
    write(part, dict(sorted((others | {one.name: verdicts[one.name] for one in made}).items(), key=_function)))
    count = Counter(one.verdict for one in verdicts.values())
    print(f"{path.stem}: {dict(count)} in {time.monotonic() - begun:.0f} s", flush=True)


def _function(of: tuple[str, Verdict]) -> str:
    return of[0].partition(":")[0]
