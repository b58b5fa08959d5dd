"""The orphan killer, which kills the worker's child processes when the worker is gone. The killer is a separate
program, which `orphan_registry.py` starts.

It reads `+PGID` and `-PGID` lines, and remembers the live process groups. When its input ends, the worker has died
(even by SIGKILL) or stopped. Then it kills every remaining group, with all descendants. On systems with /proc it also
kills every process with the worker's mark in its environment. That finds processes started at the moment of the
worker's death, and those that left their group. The killer uses only the standard library, so that it starts in
milliseconds and stays small.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

LOOK_EVERY = 1.0
"""The seconds between two checks that the parent lives. A process that the worker forked may hold the pipe open."""
ROUNDS = 20
"""The maximum number of searches for marked processes, which end when none is found."""


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    parent, mark = int(sys.argv[1]), sys.argv[2].encode()
    for group in _left_by(parent):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    empty = 0
    for _ in range(ROUNDS):
        marked = _marked(mark)
        for pid in marked:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        empty = 0 if marked else empty + 1
        if empty == 2:  # search twice, since a starting process shows no environment for a moment
            break
        time.sleep(0.05)


def _left_by(parent: int) -> set[int]:
    """Wait for the end of the worker, and return the groups that it has not reported as ended."""
    alive: set[int] = set()
    unfinished = b""
    while True:
        if not select.select([0], [], [], LOOK_EVERY)[0]:
            if os.getppid() != parent:  # checked only now, since the worker's last lines must be read first
                return alive
            continue
        piece = os.read(0, 65536)
        if not piece:
            return alive
        *lines, unfinished = (unfinished + piece).split(b"\n")
        for line in lines:
            (alive.add if line[:1] == b"+" else alive.discard)(int(line[1:]))


def _marked(mark: bytes) -> list[int]:
    pids = []
    with contextlib.suppress(FileNotFoundError):  # a system without /proc
        for entry in os.listdir("/proc"):
            # The process has ended, or belongs to another user.
            with contextlib.suppress(OSError):
                if entry.isdigit():
                    with open(f"/proc/{entry}/environ", "rb") as environ:
                        if mark in environ.read().split(b"\0"):
                            pids.append(int(entry))
    return pids


if __name__ == "__main__":
    main()
