"""Ids: UUIDv7 (RFC 9562), made by the client and ordered by time, which suits B-trees."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from uuid import UUID

EXECUTION_CALLER = "execution:"
"""The beginning of the name of a caller that has the token of an execution. The id of the execution follows."""
_state = (0, 0)
_ahead = 0  # milliseconds by which this machine's clock is ahead of the database's


def new_id() -> UUID:
    """Return a new UUIDv7 that is larger than all that this process made before (RFC 9562, 6.2, method 2)."""
    global _state
    ms = time.time_ns() // 1_000_000 - _ahead
    last, tail = _state
    if ms > last:
        tail = int.from_bytes(os.urandom(9), "big") >> 2  # 70 random bits below the 4 spare ones
    else:
        ms, tail = last, tail + 1 + (os.urandom(1)[0] << 8)
    tail &= (1 << 74) - 1
    _state = (ms, tail)
    return UUID(int=(ms << 80) | (7 << 76) | ((tail >> 62) << 64) | (2 << 62) | (tail & ((1 << 62) - 1)))


def go_by(now: datetime) -> None:
    """Set the clock for new ids to `now`, the database's time, so that their order is right even if this machine's
    clock is wrong."""
    global _ahead, _state
    _ahead = time.time_ns() // 1_000_000 - int(now.timestamp() * 1000)
    _state = (0, 0)


def made_at(id: UUID) -> datetime:
    """Return the instant at which a UUIDv7 was made, to a millisecond, on its maker's clock."""
    return datetime.fromtimestamp((id.int >> 80) / 1000, UTC)


def first_id(at: datetime, later: int = 0) -> UUID:
    """Return the smallest UUIDv7 that can be made `later` seconds after `at`. All ids made before that instant are
    smaller."""
    ms = max(0, int((at.timestamp() + later) * 1000))
    return UUID(int=(ms << 80) | (7 << 76) | (2 << 62))
