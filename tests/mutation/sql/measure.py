"""The functions that each test calls, kept in a file: measured once, and again when tests were added or took another way."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.store.schema import functions
from tests.crash.processes import ROOT
from tests.mutation.postgres import count_all_calls, migrated

FILE = Path(__file__).with_name("calls.tsv")
"""Seconds, test, and the functions that it calls, by their place in the first line."""
TESTS = (
    *("tests/penstock/store", "tests/penstock_executor", "tests/penstock_worker", "tests/penstock/operate"),
    *(
        "tests/penstock/client",
        "tests/penstock/messaging",
        "tests/penstock/cli",
        "tests/penstock/language/test_moves.py",
    ),
    *("tests/interleavings", "tests/flows", "tests/security"),
)


@dataclass(frozen=True)
class Measured:
    """A test: which functions it calls, and how long it takes."""

    test: str
    seconds: float
    calls: frozenset[str]


def measure(tests: Sequence[str]) -> None:
    """Run these tests, or all that may call a function, and write down what they call. Rows of tests that were removed, and
    functions that were removed, are left out."""
    with migrated() as home, tempfile.TemporaryDirectory() as folder:
        asyncio.run(count_all_calls(home))
        file = Path(folder) / "calls"
        file.touch()
        command = [sys.executable, "-m", "pytest", "-p", "tests.mutation.sql.calls", *(tests or TESTS)]
        subprocess.run(
            [*command, "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider"],
            env={**os.environ, "PENSTOCK_TEST_CALLS": str(file)},
            check=False,
        )
        lines = [json.loads(line) for line in file.read_text().splitlines()]
    measured = {test.test: test for test in read() if is_there(test.test)}
    measured |= {
        line["test"]: Measured(line["test"], line["seconds"], frozenset(line["calls"]))
        for line in lines
        if line["calls"]
    }
    write(measured.values())


def is_there(test: str) -> bool:
    """Return whether the file of a test still has a function of its name."""
    file, _, rest = test.partition("::")
    name = rest.partition("[")[0].rpartition("::")[2]
    path = ROOT / file
    return path.exists() and re.search(rf"\bdef {name}\(", path.read_text()) is not None


def read() -> list[Measured]:
    if not FILE.exists():
        return []
    first, *lines = FILE.read_text().splitlines()
    names = first.split()
    return [
        Measured(test, float(seconds), frozenset(names[int(place)] for place in places.split()))
        for seconds, test, places in (line.split("\t") for line in lines)
    ]


def write(measured: Iterable[Measured]) -> None:
    known = {path.stem for path in (functions.folder() / "functions").rglob("*.sql")}
    tests = [
        replace(test, calls=test.calls & known)
        for test in sorted(measured, key=lambda test: test.test)
        if test.calls & known
    ]
    names = sorted(set[str]().union(*(test.calls for test in tests)))
    place = {name: str(n) for n, name in enumerate(names)}
    lines = [
        f"{test.seconds}\t{test.test}\t{' '.join(place[name] for name in sorted(test.calls))}"
        for test in tests
    ]
    FILE.write_text("\n".join([" ".join(names), *lines, ""]))
