"""workflow.started -> its first tasks; or, for one that has begun, whatever is due (more to start, a command, a stop)."""

from __future__ import annotations

from penstock.advance.open_workflows import open_workflows
from penstock.advance.turns import advance
from penstock.messaging.consumer import Batch
from penstock.store.session.database import Transaction


async def handle(batch: Batch, tx: Transaction) -> None:
    workflows = await open_workflows(tx, batch.ids)
    if workflows:
        await advance(tx, workflows)
