"""Where this machine's clock is far off the database's: what it has made ids for gets others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from penstock.ids import go_by, new_id
from penstock.store import clock
from penstock.store.database import Session
from penstock.store.events import NewEvent
from penstock.store.executions import Submission

New = TypeVar("New", Submission, NewEvent)


async def with_new_ids(session: Session, group: Sequence[New]) -> list[New]:
    """These with ids by the database's clock, which all that this process makes from here on go by. Nothing of them may have
    been stored: the database has refused the ids that they had."""
    go_by(await clock.now(session))
    return [replace(one, id=new_id()) for one in group]
