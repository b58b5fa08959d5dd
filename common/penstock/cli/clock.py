"""The clock by which a command counts ages and durations: that of the database, or over HTTP that of the server. The clock of the
command's own machine may be wrong."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.store.session import clock
from penstock.store.session.database import Session

if TYPE_CHECKING:
    import httpx

UNNOTICED = timedelta(seconds=2)
"""The difference of two clocks that the answer of a server does not show, since it has whole seconds."""
_ahead: list[timedelta] = []
"""The time by which the clock of the installation is ahead of this machine's. Empty before the command has looked at it."""


def is_noted() -> bool:
    """Return whether the command has looked at the clock of the installation."""
    return bool(_ahead)


def noted() -> datetime:
    """Return the present instant. The command has looked at the clock of the installation, if there is one."""
    return datetime.now(UTC) + (_ahead[0] if _ahead else timedelta(0))


async def note(session: Session) -> None:
    """Note how far the database's clock is ahead. If the database does not answer, the command reports that itself."""
    with contextlib.suppress(PenstockError):
        sent_at = datetime.now(UTC)
        at = await clock.now(session)
        _ahead[:] = [at - _middle(sent_at)]


async def note_answer(answer: httpx.Response) -> None:
    """Note how far the clock of a server is ahead, which has sent this answer."""
    try:
        at = parsedate_to_datetime(answer.headers["date"])
    except (KeyError, ValueError):
        return
    ahead = at - datetime.now(UTC)
    _ahead[:] = [timedelta(0) if abs(ahead) < UNNOTICED else ahead]


def _middle(sent_at: datetime) -> datetime:
    return sent_at + (datetime.now(UTC) - sent_at) / 2
