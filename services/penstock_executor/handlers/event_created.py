"""The handler of event.created: it enforces the rules that match, and starts their executions."""

from __future__ import annotations

from penstock.messaging.consumer import Batch
from penstock.store.events import events
from penstock.store.session.database import Transaction
from penstock_executor import rule_matching, system_events


async def handle(batch: Batch, tx: Transaction) -> None:
    new_events = await events.read(tx, batch.ids)
    if len(new_events) < len(batch.ids):  # a message that was parked for days
        new_events = await events.read(tx, batch.ids, days=3650)
    await system_events.complete(tx, new_events)
    await rule_matching.match(tx, new_events)
    await events.matched(tx, batch.ids)
