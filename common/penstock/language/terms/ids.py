"""Ids are UUIDv7 (RFC 9562): made by the client, ordered by time, kind to B-trees."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from uuid import UUID

_state = (0, 0)
_ahead = 0  # milliseconds


def new_id() -> UUID:
    """A fresh UUIDv7, larger than any that this process made before (RFC 9562, 6.2, method 2)."""
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
    """It is `now` by the clock that counts: ids made from here on are in its order, however wrong this machine's clock is."""
    global _ahead, _state
    _ahead = time.time_ns() // 1_000_000 - int(now.timestamp() * 1000)
    _state = (0, 0)


def made_at(id: UUID) -> datetime:
    """The instant (to a millisecond, on its maker's clock) at which a UUIDv7 was made."""
    return datetime.fromtimestamp((id.int >> 80) / 1000, UTC)


def first_id(at: datetime, later: int = 0) -> UUID:
    """The smallest UUIDv7 that may be made at an instant so many seconds `later`: all that were made before are smaller."""
    ms = max(0, int((at.timestamp() + later) * 1000))
    return UUID(int=(ms << 80) | (7 << 76) | (2 << 62))
