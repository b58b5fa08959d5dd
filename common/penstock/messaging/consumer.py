"""The consumer of a queue: messages in, one transaction, messages out. The consumer is the only place that settles
deliveries, and acks after the commit.

A handler receives all arrived messages as one batch, and refuses those that cannot be handled. If a batch fails
nevertheless, for instance in the database, it is split until the faulty item is alone. Refused and faulty messages
become dead letters with their reason. After a transient error the batch is kept, and retried with a backoff in this
process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from uuid import UUID

import structlog

from penstock.errors import PenstockError, Undecodable
from penstock.messaging import broadcast, envelope
from penstock.messaging.metrics import Metrics
from penstock.messaging.outbox import Publisher
from penstock.messaging.pieces import PIECE, pieces
from penstock.messaging.relay import offer_again
from penstock.messaging.retry_log import RetryLog, reason_of
from penstock.messaging.transports import QUEUE_HEADER, REASON_HEADER, Delivery, Message, Transport
from penstock.store.outbox import queues
from penstock.store.session.database import Database, Transaction, is_transient, retried

log = structlog.get_logger()


Refused = tuple[Delivery, str]
"""A delivery, and the reason for its dead letter as text. An exception would keep the delivery's body in memory,
through the frames of its traceback, until a garbage collection."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The input of one call of a handler: the ids of the envelopes, without duplicates, or the deliveries of foreign
    events."""

    ids: list[UUID]
    deliveries: list[Delivery] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    """Deliveries that the handler refuses, with the reasons. They become dead letters once the others are committed."""

    def refuse(self, delivery: Delivery, error: PenstockError) -> None:
        self.refused.append((delivery, reason_of(error)))


Handler = Callable[[Batch, Transaction], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Route:
    """A queue and its handler. With `raw`, its messages are not envelopes, and the handler reads the deliveries."""

    queue: str
    handle: Handler
    raw: bool = False


class Consumer:
    """A consumer of one queue with one handler, one batch at a time, on a session of its own."""

    def __init__(
        self,
        route: Route,
        transport: Transport,
        database: Database,
        publisher: Publisher,
        metrics: Metrics,
        *,
        batch: int = 500,
        handled: Callable[[], None] = lambda: None,
        process: UUID | None = None,
    ) -> None:
        """`handled` is called after each batch. `process` is the owner of the consumer: when it has ended, other
        processes may publish the messages that it leased."""
        self._handled = handled
        self._process = process
        self.route = route
        self._seconds = metrics.batch_seconds.labels(route.queue)
        self._items = metrics.batch_items.labels(route.queue)
        self._retries = metrics.retries.labels(route.queue)
        self._retry_log = RetryLog(route.queue)
        self._dead = metrics.dead_letters.labels(route.queue)
        self._transport = transport
        self._session = database.session()
        self._publisher = publisher
        self._batch = batch
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Consume until stopped. The received messages are handled before the end."""
        self._subscription = await self._transport.subscribe(self.route.queue, self._batch)
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            await offer_again(self._transport, self._session, self.route.queue, self._process)
            while not self._stopping.is_set():
                receive = asyncio.ensure_future(self._subscription.receive(self._batch))
                await asyncio.wait({receive, stop}, return_when=asyncio.FIRST_COMPLETED)
                if not receive.done():
                    receive.cancel()
                    return
                deliveries = receive.result()
                if not deliveries:
                    return
                await self._take(deliveries)
        finally:
            stop.cancel()
            await self._subscription.close()

    def stop(self) -> None:
        self._stopping.set()

    async def _take(self, deliveries: Sequence[Delivery]) -> None:
        fresh: list[Delivery] = []
        for delivery in deliveries:
            if delivery.attempts:
                # Its handling failed before, or its replica died: handle it alone, so that it does not affect others.
                await self._handle([delivery])
            else:
                fresh.append(delivery)
        if fresh:
            await self._handle(fresh)

    async def _handle(self, deliveries: Sequence[Delivery]) -> None:
        """Handle these deliveries as one batch, or split. Every delivery is settled when this returns."""
        good, ids = await self._decode(deliveries)
        if not good:
            return
        refused: list[Refused] = []
        size = len(good) if self.route.raw else len(ids)
        for start in range(0, size, self._batch):
            part = (
                Batch([], good[start : start + self._batch])
                if self.route.raw
                else Batch(ids[start : start + self._batch])
            )
            try:
                await self._transact(part)
            except Exception as error:
                await self._split(good, error)
                return
            refused += part.refused
        await asyncio.sleep(0)  # publish the staged messages before the ack: other processes wait for them
        dead = {id(delivery) for delivery, _ in refused}
        await self._subscription.ack([delivery for delivery in good if id(delivery) not in dead])
        await self._bury(refused)

    async def _decode(self, deliveries: Sequence[Delivery]) -> tuple[list[Delivery], list[UUID]]:
        if self.route.raw:
            return list(deliveries), []
        good: list[Delivery] = []
        refused: list[Refused] = []
        ids: dict[UUID, None] = {}
        for delivery in deliveries:
            try:
                ids |= dict.fromkeys(envelope.decode(delivery.body).ids)
                good.append(delivery)
            except Undecodable as error:
                refused.append((delivery, reason_of(error)))
        await self._bury(refused)
        return good, sorted(ids, key=attrgetter("int"))

    async def _transact(self, batch: Batch) -> None:
        async def handle() -> Transaction:
            batch.refused.clear()
            try:
                with self._seconds.time():
                    async with self._session.transaction() as tx:
                        await self.route.handle(batch, tx)
            except Exception as error:
                if is_transient(error):  # `retried` repeats the whole call
                    self._retries.inc()
                    self._retry_log.add(error)
                raise
            return tx

        tx = await retried(handle)
        self._items.observe(len(batch.deliveries) or len(batch.ids))
        self._publisher.publish(tx.staged)
        await broadcast.cancel_requested(self._transport, tx.canceling)
        self._handled()

    async def _split(self, deliveries: Sequence[Delivery], error: Exception) -> None:
        if len(deliveries) > 1:
            middle = len(deliveries) // 2
            await self._handle(deliveries[:middle])
            await self._handle(deliveries[middle:])
            return
        (delivery,) = deliveries
        if self.route.raw:
            await self._bury([(delivery, reason_of(error))])
            return
        decoded = envelope.decode(delivery.body)
        for id in decoded.ids:
            try:
                await self._transact(Batch([id]))
            except Exception as failure:
                await self._put_aside(delivery, decoded.type, id, failure)
        await self._subscription.ack([delivery])

    async def _put_aside(self, delivery: Delivery, type: str, id: UUID, error: Exception) -> None:
        """Make a dead letter of one id of an envelope that cannot be handled."""
        single = Message(
            queue=queues.DEAD,
            body=envelope.encode(type, [id]),
            id=f"{delivery.id}-{id}",
            type=type,
            headers={REASON_HEADER: reason_of(error), QUEUE_HEADER: self.route.queue},
        )
        log.error(
            "handler.gave_up",
            queue=self.route.queue,
            item_id=str(id),
            reason=reason_of(error),
            exc_info=error,
        )
        self._dead.inc()
        while not (await self._transport.publish([single]))[0]:
            await asyncio.sleep(1)

    async def _bury(self, refused: Sequence[Refused]) -> None:
        """Dead-letter these deliveries, those with the same reason together."""
        by_reason: dict[str, list[Delivery]] = {}
        for delivery, reason in refused:
            by_reason.setdefault(reason, []).append(delivery)
        for reason, deliveries in by_reason.items():
            log.warning(
                "message.dead",
                queue=self.route.queue,
                message_id=deliveries[0].id,
                messages=len(deliveries),
                reason=reason,
            )
            self._dead.inc(len(deliveries))
        if sum(len(delivery.body) for delivery, _ in refused) <= PIECE:
            await asyncio.gather(*(self._dead_letter(letters, why) for why, letters in by_reason.items()))
        else:
            for reason, letters in by_reason.items():
                for piece in pieces(letters, lambda letter: len(letter.body)):
                    await self._dead_letter(piece, reason)

    async def _dead_letter(self, deliveries: Sequence[Delivery], reason: str) -> None:
        await retried(lambda: self._subscription.dead_letter(deliveries, reason))
