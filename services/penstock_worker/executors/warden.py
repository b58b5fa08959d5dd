"""Kills the worker's child processes when the worker is gone. A program of its own, started by `watch.py`.

It reads `+PGID` and `-PGID` lines and remembers which process groups are alive. When its input ends, the
worker has died (even by SIGKILL) or stopped, and every group that is left is killed, grandchildren included.
Only the standard library, so that it starts in a few milliseconds and stays small.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys

LOOK_EVERY = 1.0
"""Seconds. A process that the worker forked may hold our pipe open, so the parent is looked for too."""


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    parent = int(sys.argv[1])
    alive: set[int] = set()
    rest = b""
    while os.getppid() == parent:
        if not select.select([0], [], [], LOOK_EVERY)[0]:
            continue
        piece = os.read(0, 65536)
        if not piece:
            break
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            (alive.add if line[:1] == b"+" else alive.discard)(int(line[1:]))
    for group in alive:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
