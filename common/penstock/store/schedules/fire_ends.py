"""The end of fires: outcomes of ended executions are recorded, and fires with a lost execution are started again, a
bounded number of times."""

from __future__ import annotations

from penstock.errors import DefinitionError
from penstock.language.moves.fires import FAILED
from penstock.store.schedules import statements
from penstock.store.schedules.firing import FireBuilder
from penstock.store.schedules.statements import LostFire, NewFire
from penstock.store.session.database import Transaction

MOST_RECOVERIES = 3
"""Executions that a fire gets after its first was lost. Further ones would probably be lost the same way."""


async def settle(tx: Transaction, limit: int) -> tuple[int, int]:
    """Settle at most `limit` fires. Return the number that had ended, and the number that were started again."""
    settled, lost_fires = await statements.settle(tx, limit)
    if not lost_fires:
        return settled, 0
    builder = await FireBuilder.load(tx, lost_fires)
    fires = [_again(builder, row) for row in lost_fires]
    return settled, await statements.recover(tx, [row.execution_id for row in lost_fires], fires)


def _again(builder: FireBuilder, row: LostFire) -> NewFire:
    if row.namespace_id is None:
        return _failed(row, "its execution was lost, and its schedule is deleted")
    if row.recoveries >= MOST_RECOVERIES:
        return _failed(row, f"its execution was lost {row.recoveries + 1} times")
    try:
        return builder.fire(row, row.due_at, row.kind, recovery=True)
    except DefinitionError as error:
        return _failed(row, f"its execution was lost, and its schedule is wrong: {error.message}")


def _failed(row: LostFire, error: str) -> NewFire:
    nothing = (None,) * 7
    return NewFire(row.ref, row.due_at, row.kind, FAILED, "allow", row.definition_id, *nothing, error)
