"""A server's process: started with its output in a file, watched by the reaper, ended for certain."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.service.embedded import cluster
from tests.servers import reaper

_given: set[int] = set()


def free_port() -> int:
    """One that nobody listens on, and that was not given before: whom it was given to may not listen there yet."""
    while (port := cluster.free_port()) in _given:
        pass
    _given.add(port)
    return port


class Process:
    """A child in a process group of its own. `signal` goes to the whole group."""

    def __init__(
        self, command: Sequence[str], *, log: Path, env: Mapping[str, str], spawn: Mapping[str, Any]
    ) -> None:
        with open(log, "ab") as output:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(env),
                cwd="/",
                process_group=0,
                **spawn,
            )
        reaper.watch_process(self._child.pid)

    @property
    def pid(self) -> int:
        return self._child.pid

    def alive(self) -> bool:
        return self._child.poll() is None

    def signal(self, number: int) -> None:
        if self.alive():
            os.killpg(self.pid, number)

    def end(self, number: int, seconds: float) -> None:
        """Send `number` and wait; kill what has not ended after `seconds`."""
        self.signal(number)
        try:
            self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self._child.wait()


def new_folder(name: str) -> Path:
    """A short path, so that sockets fit, which other uids can enter and which goes with this run."""
    folder = Path(tempfile.mkdtemp(prefix=f"{reaper.PREFIX}{name}-")).resolve()
    folder.chmod(0o711)
    reaper.watch_folder(folder)
    return folder


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
