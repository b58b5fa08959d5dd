"""The clock by which a command counts ages and durations: that of the database, or over HTTP that of the server. The clock of the
command's own machine may be wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from penstock.store.session.noted_clock import is_noted, note, note_difference, noted

if TYPE_CHECKING:
    import httpx

__all__ = ["is_noted", "note", "note_answer", "noted"]
UNNOTICED = timedelta(seconds=2)
"""The difference of two clocks that the answer of a server does not show, since it has whole seconds."""


async def note_answer(answer: httpx.Response) -> None:
    """Note how far the clock of a server is ahead, which has sent this answer."""
    try:
        at = parsedate_to_datetime(answer.headers["date"])
    except (KeyError, ValueError):
        return
    ahead = at - datetime.now(UTC)
    note_difference(timedelta(0) if abs(ahead) < UNNOTICED else ahead)
