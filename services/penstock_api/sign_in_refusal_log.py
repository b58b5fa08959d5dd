"""The log of refused sign-ins. A flood of them writes two lines in ten seconds, instead of a line for each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from penstock.run.cut_texts import cut_end

log = structlog.get_logger()

WINDOW = 10.0
"""The seconds in which refusals after the first are only counted."""


def _after_window(end: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(WINDOW, end)


class RefusedLogIns:
    """The refused sign-ins of one process. The first one is logged at once. The others of its window are one line when
    it ends."""

    def __init__(self, after_window: Callable[[Callable[[], None]], None] = _after_window) -> None:
        self._after_window = after_window
        self._is_counting = False
        self._count = 0
        self._last: tuple[str, str, str] = ("", "", "")

    def note(self, name: str, address: str, reason: str) -> None:
        """Log a refusal, or count it."""
        self._count, self._last = self._count + 1, (cut_end(name, 100), address, reason)
        if not self._is_counting:
            self._write()
            self._is_counting = True
            self._after_window(self._end)

    def _end(self) -> None:
        self._is_counting = False
        if self._count:
            self._write()
            self._is_counting = True  # the refusals go on, so the next one is counted and not logged at once
            self._after_window(self._end)

    def _write(self) -> None:
        """Log the number of refusals since the last line, with the name, address and reason of the last one."""
        name, address, reason = self._last
        log.warning("api.log_in_refused", count=self._count, name=name, address=address, reason=reason)
        self._count = 0

    def close(self) -> None:
        """Log the counts that are not logged yet."""
        if self._count:
            self._write()
