"""Executors and workers as processes of their own, to be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.crash.forked import Forked
from tests.flows.installation import QUICK
from tests.servers import reaper

ROOT = Path(__file__).parents[2]
COMMAND_LINE = ("-m", "penstock")
Started = subprocess.Popen[bytes] | Forked


def python_path(root: Path = ROOT) -> str:
    """PYTHONPATH that runs the code below `root`, and not what happens to be installed."""
    return os.pathsep.join(str(root / part) for part in ("common", "services", "."))


class Fleet:
    """Starts `penstock executor`, `penstock worker` and `penstock gateway` processes, and ends by pid what it started. `program`:
    what Python runs in place of Penstock's own command line. Another `interpreter` runs it instead of Python. `release`: a copy
    of the code and the migrations to run, in place of these. `forked`: Penstock's own may begin as a fork, which is as good and
    takes a hundredth of the time."""

    def __init__(
        self,
        database: str,
        broker: str | None,
        log: Path,
        *,
        program: Sequence[str] = COMMAND_LINE,
        interpreter: str = sys.executable,
        release: Path | None = None,
        forked: bool = True,
        **settings: Any,
    ) -> None:
        environment = {
            **QUICK,
            "log_level": "warning",
            **settings,
            "database_url": database,
            "broker_url": broker or "",
        }
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
            **{f"PENSTOCK_{name.upper()}": str(value) for name, value in environment.items()},
            "PYTHONPATH": os.pathsep.join((python_path(release or ROOT), str(ROOT))),
        }
        self._log = log
        self._program = (interpreter, *program)
        self._forked = forked and program == COMMAND_LINE and release is None
        self.alive: list[Started] = []
        self.killed = 0

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.alive:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.alive:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, role: str, *arguments: str) -> Started:
        process: Started
        if self._forked:
            process = Forked([role, *arguments], self.environment, self._log)
        else:
            with self._log.open("ab") as log:
                process = subprocess.Popen(
                    [*self._program, role, *arguments],
                    env=self.environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            reaper.watch_process(process.pid)
        self.alive.append(process)
        return process

    def executor(self) -> Started:
        return self.start("executor")

    def worker(self, concurrency: int = 20) -> Started:
        return self.start("worker", "--module", "tests.flows.shop", "--concurrency", str(concurrency))

    def kill(self, process: Started, number: int = signal.SIGKILL) -> None:
        process.send_signal(number)
        if number == signal.SIGKILL:
            process.wait()
            self.alive.remove(process)
            self.killed += 1
