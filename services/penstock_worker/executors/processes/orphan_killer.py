"""Kills the worker's child processes when the worker is gone. A program of its own, started by
`orphan_registry.py`.

It reads `+PGID` and `-PGID` lines and remembers which process groups are alive. When its input ends, the
worker has died (even by SIGKILL) or stopped, and every group that is left is killed, grandchildren included.
Where there is a /proc, whatever carries the worker's mark in its environment is killed too: that finds what
was started in the instant in which the worker died, and what has left its group. Only the standard library,
so that it starts in a few milliseconds and stays small.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

LOOK_EVERY = 1.0
"""Seconds. A process that the worker forked may hold our pipe open, so the parent is looked for too."""
ROUNDS = 20
"""How often marked processes are looked for at the most, until there are none."""


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
        if empty == 2:  # twice, because a process shows no environment in the instant in which it starts
            break
        time.sleep(0.05)


def _left_by(parent: int) -> set[int]:
    """Wait for the end of the worker; the groups that it has not said to have ended."""
    alive: set[int] = set()
    unfinished = b""
    while True:
        if not select.select([0], [], [], LOOK_EVERY)[0]:
            if os.getppid() != parent:  # only now: what a worker said before it died must be read first
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
            # Gone meanwhile, or a process of another user.
            with contextlib.suppress(OSError):
                if entry.isdigit():
                    with open(f"/proc/{entry}/environ", "rb") as environ:
                        if mark in environ.read().split(b"\0"):
                            pids.append(int(entry))
    return pids


if __name__ == "__main__":
    main()
