"""The handler of execution.completed: the workflow advances, and the actions that follow the execution start, each
once.

Slots were released and the next waiters promoted in the transaction that ended the execution. If the worker that
ended it has also done the rest (`penstock_worker.ending.next_work`), there is no message.
"""

from __future__ import annotations

from penstock.advance.ends import follow_ends
from penstock.messaging.consumer import Batch
from penstock.store.session.database import Transaction


async def handle(batch: Batch, tx: Transaction) -> None:
    await follow_ends(tx, batch.ids)
