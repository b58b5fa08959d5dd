"""The range of a consumer's scan in its queue.

Rows that were taken stay in PostgreSQL's indexes while any transaction has an older snapshot. A scan from the beginning
goes over all of them each time. So a look begins a little before the instant up to which the last one saw everything. A
transaction that was long under way shows late what it staged early: so now and then a look goes further back, and rarely to
the beginning.
"""

from __future__ import annotations

import math
import time

NEAR, FAR = 1.0, 10.0
"""Seconds before what was seen at which a look begins."""
FAR_AGAIN, ALL_AGAIN = 0.5, 60.0
"""Seconds after which a look goes far back, and to the beginning."""
EVERYTHING = 1e9


class LookBack:
    def __init__(self) -> None:
        self._seen: float | None = None
        self._began = 0.0
        self._far_at = self._all_at = -math.inf

    def reach(self) -> float:
        """Begin a look: so many seconds back."""
        self._began = time.monotonic()
        if self._seen is None or self._began >= self._all_at + ALL_AGAIN:
            self._all_at = self._far_at = self._began
            return EVERYTHING
        if self._began >= self._far_at + FAR_AGAIN:
            self._far_at = self._began
            return self.before(FAR)
        return self.before(NEAR)

    def before(self, margin: float) -> float:
        """Seconds from now back to so many before what was seen."""
        return EVERYTHING if self._seen is None else time.monotonic() - self._seen + margin

    def saw(self, oldest: float = 0.0) -> None:
        """The look saw everything that is older than so many seconds."""
        self._seen = self._began - oldest

    def rest(self) -> float | None:
        """Seconds until a look should go far back, if the last one did not."""
        if self._far_at == self._began:
            return None
        return max(0.0, self._far_at + FAR_AGAIN - time.monotonic())

    def again(self, *, everything: bool) -> None:
        """There is something further back."""
        self._far_at = -math.inf
        if everything:
            self._seen = None
