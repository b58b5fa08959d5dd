"""The statuses, and the enforcements, that are announced to listening programs. There are none until `penstock announce`
names some."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import InvalidInput
from penstock.language.moves import STATUSES
from penstock.store.outbox.queues import ENFORCEMENT_CREATED
from penstock.store.session.database import Session

READ = "select announced from cluster"
SET = "update cluster set announced = $1"


NAMES = (*STATUSES, ENFORCEMENT_CREATED)
"""The names of all that can be announced."""


async def announced(session: Session) -> list[str]:
    """Return the names that are announced."""
    statuses: list[str] = (await session.fetch(READ))[0]["announced"]
    return statuses


async def announce(session: Session, statuses: Sequence[str]) -> list[str]:
    """Announce moves to these statuses, and enforcements if they are named, from now on, and nothing else. Return the
    names in the order of NAMES. Raises InvalidInput for an unknown name."""
    if unknown := sorted(set(statuses) - set(NAMES)):
        raise InvalidInput(
            f"unknown status {', '.join(map(repr, unknown))}", hint=f"Available: {', '.join(NAMES)}."
        )
    ordered = [status for status in NAMES if status in statuses]
    await session.fetch(SET, ordered)
    return ordered
