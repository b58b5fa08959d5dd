"""The statuses that are announced to listening programs. There are none until `penstock announce` names some."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import InvalidInput
from penstock.language.moves import STATUSES
from penstock.store.session.database import Session

READ = "select announced from cluster"
SET = "update cluster set announced = $1"


async def announced(session: Session) -> list[str]:
    """Return the statuses that are announced."""
    statuses: list[str] = (await session.fetch(READ))[0]["announced"]
    return statuses


async def announce(session: Session, statuses: Sequence[str]) -> list[str]:
    """Announce moves to these statuses from now on, and to no others. Return them in the order of STATUSES. Raises
    InvalidInput for an unknown status."""
    if unknown := sorted(set(statuses) - set(STATUSES)):
        raise InvalidInput(
            f"there is no status {', '.join(unknown)}", hint=f"There are {', '.join(STATUSES)}."
        )
    ordered = [status for status in STATUSES if status in statuses]
    await session.fetch(SET, ordered)
    return ordered
