"""execution.requested -> scheduled on its route, or queued where a limit is full."""

from __future__ import annotations

from penstock.consumer import Batch
from penstock.database import Transaction
from penstock.store import executions


async def handle(batch: Batch, tx: Transaction) -> None:
    await executions.schedule(tx, batch.ids)
