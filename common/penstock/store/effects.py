"""What a function of the database says besides the messages that it staged.

Such functions return rows of the type `staged`. A row with an `outbox_id` is a message. One without says in `queue` what
was done, and in `ids` to what: only the functions of this room look at that, and return something with a name.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from penstock.store.database import Row


def ids_of(rows: Iterable[Row], *effects: str) -> list[UUID]:
    """The ids to which one of these was done."""
    return [id for row in rows if row["outbox_id"] is None and row["queue"] in effects for id in row["ids"]]


def pairs_of(rows: Iterable[Row], effect: str) -> dict[UUID, UUID]:
    """Of an effect that says two ids a row: the first to the second."""
    return dict(row["ids"] for row in rows if row["outbox_id"] is None and row["queue"] == effect)
