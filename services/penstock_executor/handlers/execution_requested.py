"""The handler of execution.requested: the execution is scheduled on its route, or queued if a limit is full."""

from __future__ import annotations

from penstock.messaging.consumer import Batch
from penstock.store.executions import executions
from penstock.store.session.database import Transaction


async def handle(batch: Batch, tx: Transaction) -> None:
    await executions.schedule(tx, batch.ids)
