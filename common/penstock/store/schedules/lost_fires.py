"""Fires whose executions ended, which is written down; and those whose execution is gone without a trace, which are
started again, a bounded number of times."""

from __future__ import annotations

from penstock.errors import DefinitionError
from penstock.language.schedules.fires import FAILED
from penstock.store.database import Row, Transaction
from penstock.store.schedules import statements
from penstock.store.schedules.firing import Maker
from penstock.store.schedules.statements import FireRow

MOST_RECOVERIES = 3
"""Executions that a fire gets after its first was lost. More would be lost the same way."""


async def settle(tx: Transaction, limit: int) -> tuple[int, int]:
    """Settle up to `limit` fires. Returns how many had ended, and how many were started again."""
    settled, lost = await statements.settle(tx, limit)
    if not lost:
        return settled, 0
    maker = await Maker.load(tx, lost)
    fires = [_again(maker, row) for row in lost]
    return settled, await statements.recover(tx, [row["execution_id"] for row in lost], fires)


def _again(maker: Maker, row: Row) -> FireRow:
    if row["namespace_id"] is None:
        return _failed(row, "its execution was lost, and its schedule is deleted")
    if row["recoveries"] >= MOST_RECOVERIES:
        return _failed(row, f"its execution was lost {row['recoveries'] + 1} times")
    try:
        return maker.fire(row, row["due_at"], row["kind"], recovery=True)
    except DefinitionError as error:
        return _failed(row, f"its execution was lost, and its schedule is wrong: {error.message}")


def _failed(row: Row, error: str) -> FireRow:
    nothing = (None,) * 7
    return FireRow(
        row["ref"], row["due_at"], row["kind"], FAILED, "allow", row["definition_id"], *nothing, error
    )
