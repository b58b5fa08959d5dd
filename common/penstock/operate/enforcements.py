"""The list of enforcements, in pages."""

from __future__ import annotations

from uuid import UUID

from penstock.errors import InvalidInput
from penstock.language.moves.enforcements import MOVES
from penstock.language.terms.options import did_you_mean
from penstock.store.events import enforcement_list
from penstock.store.events.enforcement_list import EnforcementFilter, ListedEnforcement, Place
from penstock.store.session.database import Session


async def listed(
    session: Session, filters: EnforcementFilter, *, cursor: str | None = None, limit: int = 50
) -> tuple[list[ListedEnforcement], str | None]:
    """Return a page of enforcements, those of the newest events first, and the place where the next page begins (None:
    there is none). Raises InvalidInput for an unknown status."""
    if filters.status is not None and filters.status not in MOVES:
        raise InvalidInput(
            f"{filters.status!r} is not a status of an enforcement", hint=did_you_mean(filters.status, MOVES)
        )
    rows = await enforcement_list.page(
        session, filters, cursor=None if cursor is None else _place(cursor), limit=limit + 1
    )
    last = rows[limit - 1] if len(rows) > limit else None
    return rows[:limit], None if last is None else f"{last.event}:{last.rule}"


def _place(text: str) -> Place:
    event, _, rule = text.partition(":")
    try:
        return UUID(event), rule
    except ValueError:
        raise InvalidInput(
            f"{text!r} is not a cursor of this list",
            hint="Use the value of `next` of the previous page.",
        ) from None
