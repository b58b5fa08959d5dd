"""Tells the warden which process groups to kill should this worker die."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_PROGRAM = Path(__file__).with_name("warden.py")


class Watch:
    """Starts the warden with the first group, and a new one should it ever be gone."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._warden: subprocess.Popen[bytes] | None = None
        self._pid = 0

    def add(self, group: int) -> None:
        self._groups.add(group)
        self._tell(f"+{group}\n")

    def remove(self, group: int) -> None:
        self._groups.discard(group)
        if self._warden is not None:
            self._tell(f"-{group}\n")

    def close(self) -> None:
        """At the end of a worker that ends by itself: let the warden go. It kills what is left."""
        if self._warden is not None and self._pid == os.getpid():
            assert self._warden.stdin is not None
            self._warden.stdin.close()
            self._warden.wait()
            self._warden = None
            self._pid = 0

    def _tell(self, line: str) -> None:
        if self._pid != os.getpid():  # the first time, or in a fork, whose children another warden must watch
            self._start()
            return
        assert self._warden is not None
        assert self._warden.stdin is not None
        try:
            os.write(self._warden.stdin.fileno(), line.encode())
        except BrokenPipeError:
            self.close()
            self._start()

    def _start(self) -> None:
        # -I -S: nothing to import, and nothing of this folder on the path (its http.py would hide Python's).
        self._warden = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_PROGRAM), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._pid = os.getpid()
        assert self._warden.stdin is not None
        os.set_blocking(self._warden.stdin.fileno(), True)
        with suppress(BrokenPipeError):
            os.write(self._warden.stdin.fileno(), "".join(f"+{each}\n" for each in self._groups).encode())


WATCH = Watch()
"""One for the process: executors share it."""
atexit.register(WATCH.close)
