"""The range of a consumer's scan in its queue.

Deleted rows stay in PostgreSQL's indexes while any transaction has an older snapshot. A scan from the beginning would
pass all of them each time. So a scan begins a little before the instant up to which the last one saw everything. A
long transaction commits its staged rows late: so some scans go further back, and rarely one goes to the beginning.
"""

from __future__ import annotations

import math
import time

NEAR, FAR = 1.0, 10.0
"""Seconds before the last complete instant at which a scan begins: usually, and from time to time."""
FAR_AGAIN, ALL_AGAIN = 0.5, 60.0
"""Seconds after which a scan goes far back, and to the beginning."""
EVERYTHING = 1e9


class LookBack:
    """The range of the next scan of one queue."""

    def __init__(self) -> None:
        self._seen: float | None = None
        self._began = 0.0
        self._far_at = self._all_at = -math.inf

    def reach(self) -> float:
        """Begin a scan, and return how many seconds back it goes."""
        self._began = time.monotonic()
        if self._seen is None or self._began >= self._all_at + ALL_AGAIN:
            self._all_at = self._far_at = self._began
            return EVERYTHING
        if self._began >= self._far_at + FAR_AGAIN:
            self._far_at = self._began
            return self.before(FAR)
        return self.before(NEAR)

    def before(self, margin: float) -> float:
        """Return the seconds from now back to `margin` before the last complete instant."""
        return EVERYTHING if self._seen is None else time.monotonic() - self._seen + margin

    def saw(self, oldest: float = 0.0) -> None:
        """Record that the scan saw everything older than `oldest` seconds."""
        self._seen = self._began - oldest

    def rest(self) -> float | None:
        """Return the seconds until the next scan that goes far back is due. None: the last scan went far back, so that the
        consumer may wait until it is woken."""
        if self._far_at == self._began:
            return None
        return max(0.0, self._far_at + FAR_AGAIN - time.monotonic())

    def look_further_next(self, *, everything: bool) -> None:
        """Let the next scan go far back; with `everything`, to the beginning."""
        self._far_at = -math.inf
        if everything:
            self._seen = None
