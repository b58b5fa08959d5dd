"""The capture of output. The prints and logs of an action go to the log of its run; other output is unchanged.

Call `install()` once in a process. Nothing is redirected for each run: the replaced streams read the context variable
when something is written. So an action that prints nothing costs nothing.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from penstock.run.context import CURRENT


class _Stream:
    """A replacement of `sys.stdout` or `sys.stderr` that writes to the log of the current run."""

    def __init__(self, original: TextIO, name: str, mask: Callable[[str], str]) -> None:
        self._original = original
        self._mask = mask
        self._name = name

    def write(self, piece: str) -> int:
        run = CURRENT.get()
        if run is None:
            self._original.write(self._mask(piece))  # a thread that an action started by itself has no run
            return len(piece)
        run.log.write(self._name, piece)
        return len(piece)

    def writelines(self, pieces: Iterable[str]) -> None:
        for piece in pieces:
            self.write(piece)

    def flush(self) -> None:
        if CURRENT.get() is None:
            self._original.flush()

    def isatty(self) -> bool:
        return CURRENT.get() is None and self._original.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class _Handler(logging.Handler):
    """A logging handler that writes records to the log of the current run, as `INFO acme.shop: sold`."""

    def emit(self, record: logging.LogRecord) -> None:
        run = CURRENT.get()
        if run is None or run.log.full:
            return
        try:
            run.log("log", self.format(record))
        except Exception:
            self.handleError(record)


def install(level: int = logging.INFO, mask: Callable[[str], str] = str) -> Callable[[], None]:
    """Redirect `sys.stdout`, `sys.stderr` and the logging module for code that runs inside a run. Return a function
    that undoes it.

    Records below `level` are dropped. The root logger is set to `level`, so give other handlers their own level.
    `mask` removes secrets from output that belongs to no known run.
    """
    root, old_level = logging.getLogger(), logging.getLogger().level
    stdout, stderr = sys.stdout, sys.stderr
    handler = _Handler(level)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    sys.stdout = _Stream(stdout, "stdout", mask)
    sys.stderr = _Stream(stderr, "stderr", mask)
    root.addHandler(handler)
    if old_level > level:
        root.setLevel(level)

    def uninstall() -> None:
        sys.stdout, sys.stderr = stdout, stderr
        root.removeHandler(handler)
        root.setLevel(old_level)

    return uninstall
