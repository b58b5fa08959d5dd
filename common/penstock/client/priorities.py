"""The change of the priority of an execution that has not ended."""

from __future__ import annotations

from uuid import UUID

from penstock.client.starts import check_priority
from penstock.errors import Conflict
from penstock.store.executions import executions
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction


async def change(session: Session, id: UUID, priority: int) -> tuple[Transaction, int]:
    """Set the priority of an execution and its unfinished tasks in one transaction. Return the transaction with its
    messages, and the number of executions that had another priority. Raises NotFound if no execution has this id,
    Conflict if it has ended, and InvalidInput if the priority is out of range."""
    check_priority(priority)

    async def set_priority(tx: Transaction) -> int:
        row = await executions.get(tx, id)
        if row.finished_at is not None:
            raise Conflict(
                f"{id} has ended: it is {row.status}",
                hint=f"Start it again with a priority, or re-run it: penstock rerun {id}",
            )
        return await executions.set_priority(tx, id, priority)

    return await committed_once(session, set_priority)
