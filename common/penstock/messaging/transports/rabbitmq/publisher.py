"""The publication of many messages in one write, with a confirmation of each by the broker.

It works below aiormq's `basic_publish`, which costs a lock, a wake-up and a write for each message. Here the frames
of a batch are written together, and the confirms use aiormq's own bookkeeping. Measured, that takes a third of the
CPU time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache

import pamqp.frame
import structlog
from aiormq.abc import ChannelFrame
from aiormq.channel import Channel
from aiormq.exceptions import DeliveryError, PublishError
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from penstock.errors import ConnectionFailed
from penstock.messaging.transports.rabbitmq.call_timeouts import answered
from penstock.messaging.transports.rabbitmq.channel import KeptChannel
from penstock.messaging.transports.rabbitmq.channel_refusals import Refusals
from penstock.messaging.transports.rabbitmq.connection import Link
from penstock.messaging.transports.rabbitmq.wire import Outgoing
from penstock.store.session import crash_points

log = structlog.get_logger(__name__)

WRITE_SIZE = 256 * 1024
"""Bytes that are written to the socket at once, after which its buffer has to drain."""

Confirmation = asyncio.Future[object]


class Publisher:
    """The publisher of a connection. `timeout`: seconds for a whole batch, from the call to the last confirm. `doubted`
    is called with the routing keys of messages that no queue accepted. `doubted` is called without keys when the
    channel was lost, as happens if an exchange does not exist."""

    def __init__(self, link: Link, timeout: float, doubted: Callable[[Collection[str]], None]) -> None:
        self._timeout = timeout
        self._doubted = doubted
        self._kept = KeptChannel(link, "publish", prepare=self._prepare, on_loss=self._lost, confirms=True)
        self._channel: Channel | None = None
        self._refusals = Refusals()
        self._writing = asyncio.Lock()
        self.blocked = False
        """The broker accepted no message when this publisher last tried, because it is short of memory or disk."""

    @property
    def up(self) -> bool:
        return self._channel is not None

    async def open(self, deadline: float) -> None:
        await self._kept.open(deadline)

    def keep_open(self) -> None:
        """Keep a channel open from now on. Until there is one, no message is confirmed."""
        self._kept.keep_open()

    async def close(self) -> None:
        await self._kept.close()

    async def publish(self, batch: Sequence[Outgoing]) -> list[bool]:
        """Publish the messages, and return for each, in order, whether the broker confirmed it. Without a connection,
        all are False at once. A message that is not confirmed in time is False too, and may still arrive."""
        channel = self._channel
        confirmations: list[Confirmation | None] = []
        if channel is not None and batch:
            with contextlib.suppress(ConnectionFailed):
                async with answered(self._timeout):
                    await channel.connection.ready()  # waits while the broker blocks publishers
                    crash_points.at("publishing")
                    await self._write(channel, batch, confirmations)
                    crash_points.at("written")
                    await asyncio.wait([c for c in confirmations if c is not None] or [_done()])
                    crash_points.at("published")
        results = [_confirmed(c) for c in confirmations]
        if channel is not None and (self._refusals or self.blocked or not all(results)):
            await self._learn(channel, batch, confirmations)
        return results + [False] * (len(batch) - len(confirmations))

    async def _write(
        self, channel: Channel, batch: Sequence[Outgoing], confirmations: list[Confirmation | None]
    ) -> None:
        async with self._writing:  # sequence numbers must follow the order of written frames
            for piece in pieces(channel, batch):
                while (busy := in_flight(channel, piece)) is not None:
                    await asyncio.wait([busy])
                if channel is not self._channel:
                    return
                confirmations += await write(channel, piece)

    async def _learn(
        self, channel: Channel, batch: Sequence[Outgoing], confirmations: Sequence[Confirmation | None]
    ) -> None:
        """Draw conclusions from the broker's answers about the topology, the queues and this channel."""
        await self._note_blocked(channel)
        answers = [(m.routing_key, c) for m, c in zip(batch, confirmations, strict=False) if c is not None]
        if back := {queue for queue, c in answers if _came_back(c)}:
            self._doubted(back)
        refusing = {queue for queue, c in answers if _refused(c)}
        if silent := {queue for queue, c in answers if not c.done()}:
            refusing |= set() if self.blocked else silent
        self._refusals.over({queue for queue, c in answers if _confirmed(c)} - refusing)
        if self._refusals.count(refusing) and channel is self._channel:
            self._channel = None  # frames that were written after the close would end the connection
            self._kept.renew(f"RabbitMQ refused messages for {', '.join(sorted(refusing))}")

    async def _note_blocked(self, channel: Channel) -> None:
        """Log when the broker begins to block publishers, and when it accepts messages again."""
        blocked = await _is_blocked(channel)
        if blocked and not self.blocked:
            log.warning(
                "rabbitmq.blocked",
                reason="RabbitMQ accepts no messages: it is short of memory or disk",
                hint="Find the cause with: rabbitmq-diagnostics alarms. Messages wait in PostgreSQL until then.",
            )
        elif self.blocked and not blocked:
            log.info("rabbitmq.unblocked")
        self.blocked = blocked

    async def _prepare(self, channel: object) -> None:
        assert isinstance(channel, Channel)
        self._channel = channel

    def _lost(self) -> None:
        self._channel = None
        self._doubted(())


Piece = list[tuple[str | None, bytes]]
"""Messages as pairs of id and frames; (None, b"") for a message that cannot be encoded."""


def pieces(channel: Channel, batch: Sequence[Outgoing]) -> Iterator[Piece]:
    """Yield the batch in pieces of about WRITE_SIZE bytes. No id occurs twice in a piece."""
    piece: Piece = []
    ids: set[str] = set()
    size = 0
    for message in batch:
        id, frames = message.properties.message_id, encoded(channel, message)
        if size + len(frames) > WRITE_SIZE or id in ids:
            yield piece
            piece, ids, size = [], set(), 0
        piece.append((id if frames else None, frames))
        size += len(frames)
        if id is not None:
            ids.add(id)
    yield piece


def encoded(channel: Channel, message: Outgoing) -> bytes:
    """Return the frames of a message; none if it cannot be encoded, so that the others can be sent."""
    try:
        method = _method(channel.number, message.exchange, message.routing_key, message.mandatory)
        header = ContentHeader(properties=message.properties, body_size=len(message.body))
        head = method + pamqp.frame.marshal(header, channel.number)
    except (TypeError, ValueError, OverflowError) as error:
        log.error(
            "rabbitmq.message_not_encodable", message_id=message.properties.message_id, reason=str(error)
        )
        return b""
    limit = channel.max_content_size if channel.max_content_size > 0 else len(message.body)
    body = [
        pamqp.frame.marshal(ContentBody(message.body[start : start + limit]), channel.number)
        for start in range(0, len(message.body), max(limit, 1))
    ]
    return head + b"".join(body)


@lru_cache(1024)  # saves a tenth of a publish's CPU time; a process has few queues
def _method(channel: int, exchange: str, routing_key: str, mandatory: bool) -> bytes:
    method = Basic.Publish(exchange=exchange, routing_key=routing_key, mandatory=mandatory)
    return pamqp.frame.marshal(method, channel)


def in_flight(channel: Channel, piece: Piece) -> Confirmation | None:
    """Return the confirmation of an earlier publish of one of these ids that is pending; None for none.

    The broker returns an unroutable message with its id and no sequence number. If the same id were in flight twice,
    the wrong message could be counted as returned, and the other one as safe.
    """
    for id, _ in piece:
        tag = channel.message_id_delivery_tag.get(id) if id is not None else None
        confirmation = channel.confirmations.get(tag) if tag is not None else None
        if confirmation is not None and not confirmation.done():
            return confirmation
    return None


async def write(channel: Channel, piece: Piece) -> list[Confirmation | None]:
    """Number the messages, register their confirms, write their frames, and wait until the socket has accepted them."""
    first = channel.delivery_tag
    confirmations: list[Confirmation | None] = []
    for id, frames in piece:
        confirmations.append(_register(channel, id) if frames else None)
    if channel.delivery_tag == first:
        return confirmations
    drained = channel.create_future()
    frame = ChannelFrame(b"".join(frames for _, frames in piece), should_close=False, drain_future=drained)
    try:
        await channel.write_queue.put(frame)
    except BaseException:
        _unregister(channel, first)  # the broker has not seen these messages: their numbers are free
        drained.cancel()
        raise
    await drained
    return confirmations


def _register(channel: Channel, id: str | None) -> Confirmation:
    channel.delivery_tag += 1
    tag = channel.delivery_tag
    confirmation: Confirmation = channel.create_future()
    channel.confirmations[tag] = confirmation
    if id is not None:
        channel.message_id_delivery_tag[id] = tag

        def forget(_: Confirmation) -> None:
            if channel.message_id_delivery_tag.get(id) == tag:
                del channel.message_id_delivery_tag[id]

        confirmation.add_done_callback(forget)
    return confirmation


def _unregister(channel: Channel, first: int) -> None:
    while channel.delivery_tag > first:
        channel.confirmations.pop(channel.delivery_tag).cancel()
        channel.delivery_tag -= 1


def _confirmed(confirmation: Confirmation | None) -> bool:
    """Return True for an ack. A return, a refusal and a lost channel are exceptions."""
    return (
        confirmation is not None
        and confirmation.done()
        and not confirmation.cancelled()
        and confirmation.exception() is None
        and isinstance(confirmation.result(), Basic.Ack)
    )


def _came_back(confirmation: Confirmation) -> bool:
    """Return True for an unroutable message: no queue is bound for it."""
    return isinstance(_error(confirmation), PublishError)


def _refused(confirmation: Confirmation) -> bool:
    """Return True for a nack: a queue did not accept the message."""
    error = _error(confirmation)
    return isinstance(error, DeliveryError) and not isinstance(error, PublishError)


def _error(confirmation: Confirmation) -> BaseException | None:
    return confirmation.exception() if confirmation.done() and not confirmation.cancelled() else None


async def _is_blocked(channel: Channel) -> bool:
    """Return True if the broker, short of memory or disk, reads nothing from publishers."""
    try:
        async with asyncio.timeout(0):
            await channel.connection.ready()
    except TimeoutError:
        return True
    return False


def _done() -> asyncio.Future[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.set_result(None)
    return future
