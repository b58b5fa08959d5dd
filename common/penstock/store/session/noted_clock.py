"""The database's clock between two looks at it. The machine's own clock may be wrong, so a process notes how far the
database's is ahead of it. Filters, ages and durations need no look of their own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from penstock.errors import PenstockError
from penstock.store.session import clock
from penstock.store.session.database import Session, is_transient

_ahead: list[timedelta] = []
"""The time by which the clock of the installation is ahead of this machine's. Empty before this process has looked at it."""


def is_noted() -> bool:
    """Return whether this process has looked at the clock of the installation."""
    return bool(_ahead)


def noted() -> datetime:
    """Return the present instant. Before the first look it is that of this machine."""
    return datetime.now(UTC) + (_ahead[0] if _ahead else timedelta(0))


async def note(session: Session) -> None:
    """Look at the database's clock, and note how far it is ahead. A difference that the time of the look explains counts as
    none. If the database does not answer, the last look counts."""
    sent_at = datetime.now(UTC)
    try:
        at = await clock.now(session)
    except Exception as error:
        if isinstance(error, PenstockError) or is_transient(error):
            return
        raise
    duration = datetime.now(UTC) - sent_at
    ahead = at - (sent_at + duration / 2)
    note_difference(ahead if abs(ahead) > duration else timedelta(0))


def note_difference(ahead: timedelta) -> None:
    """Note how far the clock of the installation is ahead."""
    _ahead[:] = [ahead]


def forget() -> None:
    """Forget all looks, as a process that has just started."""
    _ahead.clear()
