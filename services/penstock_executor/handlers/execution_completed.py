"""execution.completed -> its workflow advances; and the actions that were to follow it start, each once.

Slots were released and the next waiters promoted in the transaction that ended the execution. A worker that ended it may have
done the rest, too (`penstock_worker.ending.next_step`): then there is no message.
"""

from __future__ import annotations

from penstock.advance.ends import follow_ends
from penstock.messaging.consumer import Batch
from penstock.store.session.database import Transaction


async def handle(batch: Batch, tx: Transaction) -> None:
    await follow_ends(tx, batch.ids)
