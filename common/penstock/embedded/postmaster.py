"""The server process of a data folder, as its `postmaster.pid` and the process table tell of it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from penstock.embedded.cluster import Cluster
from penstock.errors import ConnectionFailed

LOG_TAIL = 4000  # characters of the server's log that an error shows
POLL = 0.02  # seconds


@dataclass(frozen=True)
class Postmaster:
    pid: int
    port: int
    socket_folder: Path | None
    ready: bool


def read(data: Path) -> Postmaster | None:
    """What `postmaster.pid` says, whether or not that process still lives. None while it is incomplete.

    Its lines: pid, data folder, start time, port, socket folder, listen address, shared memory, status.
    """
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return None
    if len(lines) < 6:
        return None
    ready = len(lines) > 7 and lines[7].strip() == "ready"
    return Postmaster(int(lines[0]), int(lines[3]), Path(lines[4]) if lines[4] else None, ready)


def running(cluster: Cluster) -> Postmaster | None:
    """The live server of this data folder. A pid that was reused by some other process is not one."""
    noted = read(cluster.data)
    if noted is None or not is_postmaster(noted.pid, cluster.data):
        return None
    return noted


def is_postmaster(pid: int, data: Path) -> bool:
    """Whether `pid` is a live server of `data`. A zombie, which nobody has reaped yet, is dead."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and str(data) in process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def clear_remains(cluster: Cluster) -> None:
    """After a kill -9 of the postmaster: end the processes it left, and remove its pid file.

    PostgreSQL refuses to start beside a busy backend of the dead server, and trusts a pid file whose
    pid was meanwhile given to some other process. Call only when `running` found none, under a lock.
    """
    orphans = [process for process in psutil.process_iter(["cmdline"]) if _belongs(process, cluster.name)]
    for process in orphans:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(orphans, timeout=10)
    for name in ("postmaster.pid", "postmaster.opts"):
        (cluster.data / name).unlink(missing_ok=True)


def wait_until_ready(
    data: Path, log: Path, *, pid: int, alive: Callable[[], bool], seconds: float
) -> Postmaster:
    """Wait until the server `pid` accepts connections. Raises ConnectionFailed with the end of its log."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        noted = read(data)
        if noted is not None and noted.pid == pid and noted.ready:
            return noted
        if not alive():
            raise ConnectionFailed(f"PostgreSQL ended while it started.\n{tail(log)}", hint=f"Its log: {log}")
        time.sleep(POLL)
    raise ConnectionFailed(
        f"PostgreSQL was not ready within {seconds:.0f} s.\n{tail(log)}",
        hint=f"It may still be recovering: see {log}, and try again.",
    )


def tail(log: Path) -> str:
    try:
        return log.read_text(errors="replace")[-LOG_TAIL:].strip()
    except OSError:
        return "(there is no log)"


def _belongs(process: psutil.Process, name: str) -> bool:
    return any(part.startswith(f"postgres: {name}: ") for part in process.info["cmdline"] or [])
