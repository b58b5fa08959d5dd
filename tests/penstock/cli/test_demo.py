"""`penstock demo`, as it is typed: on an embedded database, also after it was killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.servers.process import new_folder, remove

DEADLINE = 120


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of files that the embedded server's account may enter, too."""
    path = new_folder("demo")
    for n in range(40):
        (path / f"module_{n}.py").write_text("def double(n):\n    return n * 2 if n else 0\n")
    yield path
    remove(path)


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "penstock", "demo"],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def left_running(folder: Path) -> list[str]:
    """Processes that have to do with the folder, once they had a moment to end."""
    deadline = time.monotonic() + 20
    while True:
        found = [
            " ".join(process.info["cmdline"])
            for process in psutil.process_iter(["cmdline"])
            if any(str(folder) in word for word in process.info["cmdline"] or ())
        ]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def test_it_runs_reports_and_leaves_nothing_running(folder: Path) -> None:
    run = start(folder)
    said, _ = run.communicate(timeout=DEADLINE)
    assert run.returncode == 0, said
    assert "40 files measured" in said
    assert "5 events, 5 matches of rules, 51 executions" in said
    assert re.search(r"found no violation of its \d+ invariants", " ".join(said.split()))
    assert "Next commands" in said
    assert left_running(folder) == []


def test_killed_in_the_middle_it_finishes_the_next_time(folder: Path) -> None:
    killed = start(folder)
    assert killed.stdout is not None
    for line in killed.stdout:
        if line.startswith("Events:"):
            break
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    again = start(folder)
    said, _ = again.communicate(timeout=DEADLINE)
    assert again.returncode == 0, said
    assert "51 executions" in said
    assert "none was lost" in " ".join(said.split())
    assert left_running(folder) == []
