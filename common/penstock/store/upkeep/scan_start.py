"""The start of a loop's scan in a table in which nearly all old rows are deleted.

Deleted rows stay in PostgreSQL's indexes while any transaction has an older snapshot. A scan from the beginning would
pass all of them each time. So a loop continues from where it stopped. From time to time it starts at the beginning,
since a long transaction may commit rows with low keys late.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Generic, TypeVar

from penstock.store.session.database import Session

Place = TypeVar("Place")

AGAIN = 60.0
"""Seconds after which a scan starts at the beginning again."""


@dataclass
class ScanStart(Generic[Place]):
    """The place at which a loop starts its next scan."""

    beginning: Place
    _place: Place | None = None
    _since: float = 0.0

    @property
    def place(self) -> Place:
        """Return the place at which to start the scan."""
        now = time.monotonic()
        if self._place is None or now - self._since > AGAIN:
            self._place, self._since = self.beginning, now
        return self._place

    def move_to(self, place: Place) -> None:
        """Start later scans at `place`: no rows are left below it."""
        self._place = place


def scan_start(session: Session, name: str, beginning: Place) -> ScanStart[Place]:
    """Return the scan start with this name in the session's cache."""
    start: ScanStart[Place] = session.cache.setdefault(("scan_start", name), ScanStart(beginning))
    return start
