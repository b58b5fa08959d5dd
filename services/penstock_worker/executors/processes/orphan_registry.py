"""The registry of process groups that the orphan killer has to kill if this worker dies."""

from __future__ import annotations

import atexit
import os
import secrets
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

MARK = "_PENSTOCK_WORKER"
"""The environment variable by which the orphan killer recognizes the worker's processes."""
_PROGRAM = Path(__file__).with_name("orphan_killer.py")


class OrphanRegistry:
    """The registry, which starts the orphan killer at its first use, and a new one if it is gone."""

    def __init__(self) -> None:
        self._owner = 0
        self._token = ""
        self._groups: set[int] = set()
        self._killer: subprocess.Popen[bytes] | None = None

    def mark(self) -> dict[str, str]:
        """Return the environment variables for a process that is about to start."""
        if self._owner != os.getpid():  # the first use, or a fork of a worker, which has its own children
            self._owner, self._token = os.getpid(), secrets.token_hex(16)
            self._groups, self._killer = set(), None
        if self._killer is None:
            self._start()
        return {MARK: self._token}

    def add(self, group: int) -> None:
        """Register the group of a marked process that has been started."""
        self._groups.add(group)
        self._tell(f"+{group}\n")

    def remove(self, group: int) -> None:
        self._groups.discard(group)
        self._tell(f"-{group}\n")

    def close(self) -> None:
        """End the orphan killer when the worker ends normally. The killer kills all remaining groups."""
        if self._killer is not None and self._owner == os.getpid():
            assert self._killer.stdin is not None
            self._killer.stdin.close()
            self._killer.wait()
            self._killer = None

    def _tell(self, line: str) -> None:
        if self._killer is None or self._owner != os.getpid():
            return
        assert self._killer.stdin is not None
        try:
            os.write(self._killer.stdin.fileno(), line.encode())
        except BrokenPipeError:
            self.close()
            self._start()

    def _start(self) -> None:
        # -I -S: it needs no packages, and nothing of this folder may be on the path (its http.py would hide Python's).
        self._killer = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_PROGRAM), str(os.getpid()), f"{MARK}={self._token}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._killer.stdin is not None
        with suppress(BrokenPipeError):
            os.write(self._killer.stdin.fileno(), "".join(f"+{group}\n" for group in self._groups).encode())


REGISTRY = OrphanRegistry()
"""The registry of this process, which all executors share."""
atexit.register(REGISTRY.close)
