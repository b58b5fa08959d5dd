"""The database's clock, on which all decisions are based."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.store.session.database import Session, Transaction

NOW = "select clock_timestamp() as at"
IN_SECONDS = "select clock_timestamp() + make_interval(secs => $1) as at"
SECONDS_SINCE = "select extract(epoch from clock_timestamp() - $1::timestamptz)::float8 as seconds"


async def now(db: Session | Transaction) -> datetime:
    """Return the present instant."""
    at: datetime = (await db.fetch(NOW))[0]["at"]
    return at


async def in_seconds(db: Session | Transaction, seconds: float) -> datetime:
    """Return the instant in `seconds`."""
    at: datetime = (await db.fetch(IN_SECONDS, seconds))[0]["at"]
    return at


async def seconds_since(db: Session | Transaction, instant: datetime | None) -> float:
    """Return the seconds since an instant; 0 for None."""
    return float((await db.fetch(SECONDS_SINCE, instant))[0]["seconds"] or 0.0)
