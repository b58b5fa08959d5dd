"""A server's process: started with its output in a file, watched by the reaper, ended for certain."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.servers import reaper

_draw = random.SystemRandom()


def free_port() -> int:
    """Return a port without a listener that was not given before, here or to another live process of the tests. A
    process that it was given to may not listen there yet, or may be down. None of those that the kernel takes for
    connections: one of these, to another server or from the port to itself, would keep a server that is down from
    coming back."""
    while not (_is_ours(port := _draw.randrange(10_000, _first_of_connections())) and _is_free(port)):
        pass
    return port


_given: set[int] = set()


def _is_ours(port: int) -> bool:
    """Reserve a port, and return true if no live process of the tests has reserved it. A reservation is a locked byte of a
    file. The lock ends with this process."""
    if port in _given:
        return False
    try:
        fcntl.lockf(_ports(os.getpid()), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    _given.add(port)
    return True


@cache
def _ports(_process: int) -> int:
    """The file, opened once by each process: what is locked is unlocked as soon as a process closes any of its own."""
    return os.open(Path(tempfile.gettempdir()) / f"penstock-ports-{os.getuid()}", os.O_RDWR | os.O_CREAT)


@cache
def _first_of_connections() -> int:
    usual = 32_768
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        return usual
    return (
        first if first > 20_000 else usual
    )  # a machine that gives nearly all of them to connections leaves no choice


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


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
