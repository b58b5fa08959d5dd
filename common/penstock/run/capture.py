"""The capture of output: the prints and logs of an action go to its run's log, and other output stays where it was.

`install()` once in a process. Nothing is redirected per run: the replaced streams look at the context variable when
something is written, so an action that prints nothing pays nothing."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from penstock.run.context import CURRENT


class _Stream:
    """Stands in for `sys.stdout` or `sys.stderr`."""

    def __init__(self, original: TextIO, name: str, mask: Callable[[str], str]) -> None:
        self._original = original
        self._mask = mask
        self._name = name

    def write(self, piece: str) -> int:
        run = CURRENT.get()
        if run is None:
            self._original.write(self._mask(piece))  # a thread of an action's own has no run
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
    """Keeps the log records of a run with it, as `INFO acme.shop: sold`."""

    def emit(self, record: logging.LogRecord) -> None:
        run = CURRENT.get()
        if run is None or run.log.full:
            return
        try:
            run.log("log", self.format(record))
        except Exception:
            self.handleError(record)


def install(level: int = logging.INFO, mask: Callable[[str], str] = str) -> Callable[[], None]:
    """Redirect `sys.stdout`, `sys.stderr` and the logging module for code that runs inside a run.

    Records below `level` are not kept; the root logger is opened up to it, so give other handlers a level of
    their own. `mask` takes secrets out of what no run is known of. Returns what undoes it."""
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
