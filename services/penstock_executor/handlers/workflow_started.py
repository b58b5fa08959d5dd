"""The handler of workflow.started: a new workflow starts its first tasks, and another one does what is due (further
starts, a command, a stop)."""

from __future__ import annotations

from penstock.advance.open_workflows import open_workflows
from penstock.advance.turns import advance
from penstock.messaging.consumer import Batch
from penstock.store.session.database import Transaction


async def handle(batch: Batch, tx: Transaction) -> None:
    workflows = await open_workflows(tx, batch.ids)
    if workflows:
        await advance(tx, workflows)
