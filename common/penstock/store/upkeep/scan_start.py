"""The start of a loop's scan in a table of which the oldest rows are nearly always gone.

Deleted rows stay in PostgreSQL's indexes while any transaction has an older snapshot. A scan from the beginning goes
over all of them each time. So a loop begins where it came to; and now and then at the beginning again, as a transaction that
was long under way shows late what it wrote early.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Generic, TypeVar

from penstock.store.session.database import Session

Place = TypeVar("Place")

AGAIN = 60.0
"""Seconds after which it begins at the beginning."""


@dataclass
class ScanStart(Generic[Place]):
    beginning: Place
    _place: Place | None = None
    _since: float = 0.0

    @property
    def place(self) -> Place:
        """Return the place from which to scan."""
        now = time.monotonic()
        if self._place is None or now - self._since > AGAIN:
            self._place, self._since = self.beginning, now
        return self._place

    def move_to(self, place: Place) -> None:
        """There is nothing more to look for below this place."""
        self._place = place


def scan_start(session: Session, name: str, beginning: Place) -> ScanStart[Place]:
    """The start of this name that the session remembers."""
    start: ScanStart[Place] = session.cache.setdefault(("scan_start", name), ScanStart(beginning))
    return start
