"""A published message and an acked one have been committed: seen through another connection."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from penstock.language.workflows import from_yaml
from penstock.messaging import envelope
from penstock.messaging.consumer import Consumer
from penstock.messaging.outbox import Publisher
from penstock.messaging.transports import Delivery, Message
from penstock.store.executions import executions
from penstock.store.outbox import queues
from penstock_executor.handlers import ROUTES
from tests.flows import shop
from tests.flows.installation import Installation
from tests.interleavings.broker import Silent


class Watching(Silent):
    """A transport with one delivery, that looks whether the announced row is visible to all sessions."""

    def __init__(self, house: Installation, delivery: Delivery) -> None:
        self.queue = delivery.queue
        self.seen: list[tuple[str, bool]] = []
        self.settled = asyncio.Event()
        self._house, self._left = house, [delivery]

    async def subscribe(self, queue: str, prefetch: int) -> Watching:
        return self

    async def receive(self, limit: int) -> list[Delivery]:
        if not self._left:
            await asyncio.Event().wait()
        return [self._left.pop()]

    async def publish(self, messages: Sequence[Message]) -> list[bool]:
        ids = [message.outbox_id for message in messages]
        rows = await self._house.rows("select id from outbox where id = any($1::bigint[])", ids)
        self.seen.append(("published", len(rows) == len(ids)))
        return [True] * len(messages)

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        self.seen.append(
            ("acked", bool(await self._house.rows("select 1 from execution where parent is not null")))
        )
        self.settled.set()

    async def dead_letter(self, deliveries: Sequence[Delivery], reason: str) -> None:
        raise AssertionError(reason)

    async def resize(self, prefetch: int) -> None: ...


CHAIN = from_yaml("{workflow: shop.chain, tasks: {one: {action: shop.count, input: {words: a b}}}}")


async def _running(house: Installation) -> UUID:
    """Store a workflow that runs, with a start that was not handled yet."""
    id = await house.client.start("shop.chain")
    async with house.session.transaction() as tx:
        await executions.schedule(tx, [id])
    return id


async def test_a_handler_s_messages_and_its_ack_come_after_its_commit(house: Installation) -> None:
    await house.apply(shop.count, CHAIN)
    id = await _running(house)
    [row] = await house.rows("delete from outbox where queue = 'workflow.started' returning queue, ids")
    body = envelope.encode(row["queue"], row["ids"])
    watching = Watching(house, Delivery(row["queue"], body, None, id="m"))
    parts = await house.parts()
    publisher = Publisher(watching, parts.database)
    [route] = [route for route in ROUTES if route.queue == queues.WORKFLOW_STARTED]
    consumer = Consumer(route, watching, parts.database, publisher, parts.metrics)
    consuming = asyncio.create_task(consumer.run())
    await asyncio.wait_for(watching.settled.wait(), 20)
    await publisher.flush()
    consuming.cancel()
    assert await house.rows("select 1 from execution where parent = $1 and status = 'scheduled'", id)
    assert sorted(watching.seen) == [("acked", True), ("published", True)]
