"""The replacement of ids that the database rejected because this machine's clock is skewed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from penstock.language.terms.ids import new_id
from penstock.store.events.events import NewEvent
from penstock.store.executions.executions import Submission

New = TypeVar("New", Submission, NewEvent)


def with_new_ids(group: Sequence[New]) -> list[New]:
    """Return the items with new ids, which follow the database's clock since its rejection. None of the items may have
    been stored."""
    return [replace(item, id=new_id()) for item in group]
