"""The ranges of numbers and instants that client methods take, as the HTTP API and the command line check them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from penstock.errors import InvalidInput
from penstock.store.session import clock

if TYPE_CHECKING:
    from penstock.store.session.database import Session

LONGEST_PAGE = 1000
"""The maximum number of rows that one call of a client returns."""
LONGEST_PERIOD_S = 3e8
"""The maximum number of seconds of a pause or of a period of figures: nearly ten years."""


def check_limit(limit: int, name: str = "limit") -> None:
    """Raise InvalidInput for a number of rows that a page cannot have."""
    if not 1 <= limit <= LONGEST_PAGE:
        raise InvalidInput(f"the {name} is not from 1 to {LONGEST_PAGE}", hint="Read page by page.")


def check_version(version: int) -> None:
    """Raise InvalidInput for a number that no version has."""
    if version < 1:
        raise InvalidInput("the version is not a number from 1", hint="Give the version that you have read.")


def check_period(seconds: float) -> None:
    """Raise InvalidInput for a period that is not above zero, or too long."""
    if not 0 < seconds <= LONGEST_PERIOD_S:
        raise InvalidInput(
            f"the seconds are not above 0 and at most {LONGEST_PERIOD_S:,.0f}",
            hint="Give the length of a period.",
        )


async def check_end(session: Session, until: datetime | None) -> None:
    """Raise InvalidInput for an end that is not an instant, or is past on the database's clock."""
    if until is None:
        return
    if until.tzinfo is None:
        raise InvalidInput(
            "`until` is not an instant with an offset", hint="Give datetime(2030, 1, 31, 9, tzinfo=UTC)."
        )
    if until <= await clock.now(session):
        raise InvalidInput(f"`until` is in the past: {until.isoformat()}", hint="Give a future instant.")
