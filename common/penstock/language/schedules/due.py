from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Due:
    """An instant (in UTC) at which a schedule fires. `meant` is the local time that a fixed-time schedule asked for,
    or None."""

    instant: datetime
    meant: datetime | None = None
