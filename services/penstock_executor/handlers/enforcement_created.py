"""enforcement.created -> its execution. Matching does this at once; this is for what was left between the two."""

from __future__ import annotations

from penstock.messaging.consumer import Batch
from penstock.store import events
from penstock.store.database import Transaction


async def handle(batch: Batch, tx: Transaction) -> None:
    await events.execute(tx, batch.ids)
