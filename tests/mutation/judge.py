"""A plugin of pytest that judges mutants of Python. It collects the tests once. Then it runs, for each mutant, the tests that
call the mutated function in a fork of this process: the quickest first, until one of them fails.

A fork costs hundredths of a second, and importing the tests costs seconds. Nothing that a test compiled or cached is there when
the next mutant is judged.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import Phase, settings

JOB = "PENSTOCK_MUTANTS"
"""The variable of the environment with the path of a JSON file: `mutants`, `lanes`, `verdicts` (a path)."""
SURVIVED, KILLED, UNCALLED = 0, 1, 33
_ENOUGH = 4
"""A mutant has so many times the processor time that its tests took, and LEAST_CPU_S, before it counts as one that hangs."""
_LEAST_CPU_S = 3
MEASURE_CPU_S = 300
_IDLE_S = 30
"""A mutant that took hardly any processor time for so long waits for what never comes, and counts as one that hangs, too."""
_IDLE_CPU_S = 0.05

sys.setrecursionlimit(3 * sys.getrecursionlimit())
"""A call of a function that mutmut watches has three frames. So code that recurses reaches as deep as without it."""


@pytest.hookimpl(trylast=True)
def pytest_sessionstart() -> None:
    """Keep no example for a later mutant, and do not look for the shortest: one that fails is enough."""
    settings.register_profile("mutants", database=None, phases=[Phase.explicit, Phase.generate])
    settings.load_profile("mutants")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    job = json.loads(Path(os.environ[JOB]).read_text())
    verdicts = Path(job["verdicts"])
    callers, cpu_seconds = _measured(session, job["lanes"], Path("measured"))
    lanes = _Lanes(job["lanes"])
    with verdicts.open("w") as file:

        def note(mutant: str) -> Callable[[int], None]:
            return lambda code: print(mutant, code, sep="\t", file=file, flush=True)

        for mutant in job["mutants"]:
            tests = sorted(
                callers[mutant.rpartition("__mutmut_")[0]], key=lambda item: cpu_seconds[item.nodeid]
            )
            if not tests:
                note(mutant)(UNCALLED)
                continue
            limit = _ENOUGH * sum(cpu_seconds[item.nodeid] for item in tests) + _LEAST_CPU_S
            lanes.run(partial(_passes, session, tests, mutant), limit, note(mutant))
        lanes.drain()
    return True


def _passes(session: pytest.Session, tests: Sequence[pytest.Item], mutant: str) -> int:
    """Run tests until one fails."""
    os.environ["MUTANT_UNDER_TEST"] = mutant
    for item, following in pairwise([*tests, None]):
        assert item is not None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return KILLED
    return SURVIVED


def _measured(
    session: pytest.Session, lanes: int, folder: Path
) -> tuple[Mapping[str, list[pytest.Item]], Mapping[str, float]]:
    """Return the tests that call each function, and the processor seconds of each test. Each test has a fork of its own, since
    what an earlier test left in a cache hides calls. A test that has not changed since an earlier run is not measured again.
    Exits where a test fails without any mutant."""
    folder.mkdir(exist_ok=True)
    files = {item: folder / f"{_digest(item)}.json" for item in session.items}
    running, codes = _Lanes(lanes), dict[str, int]()
    for item, file in files.items():
        if not file.exists():
            running.run(
                partial(_measure, session, item, file),
                MEASURE_CPU_S,
                partial(codes.__setitem__, item.nodeid),
            )
    running.drain()
    if failed := [test for test, code in codes.items() if code]:
        pytest.exit(f"fails without a mutant: {', '.join(failed)}", returncode=1)
    callers, cpu_seconds = defaultdict[str, list[pytest.Item]](list), dict[str, float]()
    for item, file in files.items():
        functions, cpu_seconds[item.nodeid] = json.loads(file.read_text())
        for function in functions:
            callers[function].append(item)
    return callers, cpu_seconds


def _digest(item: pytest.Item) -> str:
    """Return a name for a test as it is written now."""
    return sha256(item.nodeid.encode() + item.path.read_bytes()).hexdigest()[:20]


def _measure(session: pytest.Session, item: pytest.Item, file: Path) -> int:
    from mutmut.state import state

    began = time.process_time()
    code = _passes(session, [item], "stats")
    if code == SURVIVED:
        file.write_text(json.dumps([sorted(state()._stats), time.process_time() - began]))
    return code


class _Lanes:
    """The forks that run at a time."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._running: dict[int, Callable[[int], None]] = {}

    def run(self, work: Callable[[], int], cpu_seconds: float, done: Callable[[int], None]) -> None:
        """Run `work` in a fork that is ended after `cpu_seconds`. Call `done` with its exit code, or that of a signal."""
        while len(self._running) >= self._number:
            self._wait()
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            _work(work, int(cpu_seconds) + 1)
        self._running[pid] = done

    def drain(self) -> None:
        while self._running:
            self._wait()

    def _wait(self) -> None:
        pid, status = os.wait()
        if done := self._running.pop(pid, None):
            done(os.waitstatus_to_exitcode(status))


def _end_idle(sleep: Callable[[float], None] = time.sleep) -> None:
    """End this process once it is idle. A test may have replaced `time.sleep`."""
    cpu_seconds = -_IDLE_CPU_S
    while (now := time.process_time()) - cpu_seconds >= _IDLE_CPU_S:
        cpu_seconds = now
        sleep(_IDLE_S)
    os._exit(KILLED)


def _work(work: Callable[[], int], cpu_seconds: int) -> None:
    code = KILLED
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        threading.Thread(target=_end_idle, daemon=True).start()
        code = work()
    finally:
        os._exit(code)
