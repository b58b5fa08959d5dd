"""The capture of output. The prints and logs of an action go to the log of its run; other output is unchanged.

Call `install()` once for each worker. Nothing is redirected for each run: the replaced streams read the context variable
when something is written. So an action that prints nothing costs nothing.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

from penstock.run.context import CURRENT
from penstock.run.tracebacks import TrimmedTracebacks


class _Stream:
    """A replacement of `sys.stdout` or `sys.stderr` that writes to the log of the current run."""

    def __init__(self, original: TextIO, name: str, redirection: _Redirection) -> None:
        self._original = original
        self._name = name
        self.redirection = redirection

    def write(self, piece: str) -> int:
        run = CURRENT.get()
        if run is None:
            self._original.write(self.redirection.masked(piece))  # a thread that an action started has no run
            return len(piece)
        run.log.write(self._name, piece)
        if self.redirection.echoes:
            self._original.write(piece)
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


@dataclass(frozen=True, slots=True, eq=False)
class _User:
    """A user of the redirection, such as a worker."""

    level: int
    mask: Callable[[str], str]
    echo: bool


class _Redirection:
    """The redirected output of this process, while at least one worker in it uses the redirection. A worker that ends
    may have a successor that has already begun."""

    def __init__(self) -> None:
        self.users: list[_User] = []
        self._stdout, self._stderr, self._level = sys.stdout, sys.stderr, logging.getLogger().level
        self._handler = _Handler()
        self._handler.setFormatter(TrimmedTracebacks("%(levelname)s %(name)s: %(message)s"))
        sys.stdout = _Stream(self._stdout, "stdout", self)
        sys.stderr = _Stream(self._stderr, "stderr", self)
        logging.getLogger().addHandler(self._handler)

    @property
    def echoes(self) -> bool:
        """Return whether the output of runs is printed too."""
        return any(user.echo for user in self.users)

    def masked(self, piece: str) -> str:
        for user in self.users:
            piece = user.mask(piece)
        return piece

    def enter(self, user: _User) -> None:
        self.users.append(user)
        self._set_levels()

    def leave(self, user: _User) -> None:
        self.users.remove(user)
        if self.users:
            self._set_levels()
            return
        sys.stdout, sys.stderr = self._stdout, self._stderr
        logging.getLogger().removeHandler(self._handler)
        logging.getLogger().setLevel(self._level)

    def _set_levels(self) -> None:
        level = min(user.level for user in self.users)
        self._handler.setLevel(level)
        logging.getLogger().setLevel(min(self._level, level))


def install(
    level: int = logging.INFO, mask: Callable[[str], str] = str, *, echo: bool = False
) -> Callable[[], None]:
    """Redirect `sys.stdout`, `sys.stderr` and the logging module for code that runs inside a run. Return a function
    that undoes it. While others in this process have installed it too, the output stays redirected, once.

    Records below `level` are dropped. The root logger is set to `level`, so give other handlers their own level.
    `mask` removes secrets from output that belongs to no known run. With `echo` the output of runs is printed too.
    """
    redirection = sys.stdout.redirection if isinstance(sys.stdout, _Stream) else _Redirection()
    user = _User(level, mask, echo)
    redirection.enter(user)
    return lambda: redirection.leave(user)


@contextmanager
def echoed() -> Iterator[None]:
    """Write the output of runs to their logs too, as a worker does. Tests of actions still see it as their own output."""
    uninstall = install(echo=True)
    try:
        yield
    finally:
        uninstall()
