"""Processes of Penstock that are forked from one that has imported all of it: they start in a hundredth of a second, where
they would take one. What forks them is Python's own fork server. That a process starts from nothing is tested elsewhere
(`tests/deploy`, `tests/parity`)."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

IMPORTED = (
    "pytest",  # which is the main module, where tests are not shared between processes
    "penstock.cli",
    "penstock_executor.main",
    "penstock_worker.main",
    "penstock_api.main",
    "tests.flows.shop",
    "tests.crash.frozen",  # last
)


class Forked:
    """Such a process, of whom the same can be asked as of one that `subprocess` started."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        log.touch()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(IMPORTED))
        arguments = tuple(words), dict(environment), log
        self._process = context.Process(target=_live, args=arguments, daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("penstock", timeout or 0.0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _live(words: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    os.setsid()
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.environ.clear()
    os.environ.update(environment)
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]  # it may have children
    sys.argv = ["penstock", *words]
    runpy.run_module("penstock", run_name="__main__", alter_sys=True)
