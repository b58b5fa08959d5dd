"""A log of the reasons for retries: at most one line a minute for each kind of error."""

from __future__ import annotations

import time

import structlog

from penstock.errors import PenstockError
from penstock.run.cut_texts import cut_end

log = structlog.get_logger()

PAUSE = 60.0
"""Seconds between two lines about the same kind of error."""


class RetryLog:
    """A log of the retries of one queue. `times` in a line is the number of retries since the last line."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._said: dict[type[Exception], float] = {}
        self._times: dict[type[Exception], int] = {}

    def add(self, error: Exception) -> None:
        """Count a retry because of this error, and log a line if one is due."""
        kind, now = type(error), time.monotonic()
        self._times[kind] = self._times.get(kind, 0) + 1
        if now < self._said.get(kind, -PAUSE) + PAUSE:
            return
        self._said[kind] = now
        log.warning(
            "handler.retried", queue=self._queue, reason=reason_of(error), times=self._times.pop(kind)
        )


def reason_of(error: Exception) -> str:
    """Return an error as a line: its class and its message."""
    text = error.message if isinstance(error, PenstockError) else str(error)
    return cut_end(f"{type(error).__name__}: {text}", 500)
