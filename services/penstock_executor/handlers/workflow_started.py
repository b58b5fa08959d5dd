"""workflow.started -> its first tasks; or, for one that has begun, whatever is due (more to start, a stop)."""

from __future__ import annotations

from penstock.messaging.consumer import Batch
from penstock.store.database import Transaction
from penstock_executor.workflow.lock import begun, decide
from penstock_executor.workflow.write import carry_out


async def handle(batch: Batch, tx: Transaction) -> None:
    runs = await begun(tx, batch.ids)
    if runs:
        await carry_out(tx, await decide(tx, runs, {}))
