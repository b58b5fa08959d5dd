"""The server process of a data folder, as `postmaster.pid` and the process table show it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from penstock.errors import ConnectionFailed

LOG_TAIL = 4000  # characters of the server's log that an error shows
POLL = 0.02  # seconds


@dataclass(frozen=True)
class Postmaster:
    """The content of a `postmaster.pid`."""

    pid: int
    port: int
    socket_folder: Path | None
    ready: bool


def read(data: Path) -> Postmaster | None:
    """Parse `postmaster.pid`, whether or not that process still lives. Return None while it is incomplete.

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


def pid_of(data: Path) -> int | None:
    """Return the pid of the live server of this data folder, which may still be starting; None for none.

    A pid file outlives a killed server, and its pid may have been reused: both are detected.
    """
    try:
        first_line = (data / "postmaster.pid").read_text().partition("\n")[0]
    except FileNotFoundError:
        return None
    pid = int(first_line) if first_line.strip().isdigit() else None
    return pid if pid is not None and is_postmaster(pid, data) else None


def is_postmaster(pid: int, data: Path) -> bool:
    """Return True if `pid` is a live server of `data`."""
    command = _command_of(pid)
    return command is not None and _serves(command, data)


def lives(pid: int, data: Path) -> bool:
    """Return True if `pid`, which was just started as the server of `data`, has not ended.

    The parent may know its pid before its exec is done: until then its command line is empty.
    """
    command = _command_of(pid)
    return command is not None and (not command or _serves(command, data))


def clear_remains(data: Path, name: str) -> None:
    """After a kill -9: end the remaining processes of the server with this cluster name, and remove its pid file.

    PostgreSQL refuses to start beside a busy backend of the dead server. It trusts a pid file even if the pid was
    meanwhile reused by another process. Call only if `pid_of` returned None, under a lock.
    """
    title = f"postgres: {name}: "

    def is_left(command: list[str]) -> bool:
        return _serves(command, data) or any(part.startswith(title) for part in command)

    orphans = [
        process for process in psutil.process_iter(["cmdline"]) if is_left(process.info["cmdline"] or [])
    ]
    for process in orphans:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(orphans, timeout=10)
    for file in ("postmaster.pid", "postmaster.opts"):
        (data / file).unlink(missing_ok=True)


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
            raise ConnectionFailed(
                f"PostgreSQL exited during its start.\n{tail(log)}", hint=f"Its log: {log}"
            )
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


def _serves(command: list[str], data: Path) -> bool:
    """Return true if this is the command line of a postmaster of `data`: `postgres -D data ...`."""
    return len(command) > 2 and command[1:3] == ["-D", str(data)]


def _command_of(pid: int) -> list[str] | None:
    """Return the command line of a live process. A zombie, which no parent has reaped yet, is dead."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None
