"""The objects that Penstock needs on the broker, declared or checked. docs/transports.md draws them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from aiormq.abc import AbstractChannel as Channel
from aiormq.exceptions import (
    ChannelAccessRefused,
    ChannelClosed,
    ChannelLockedResource,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    ConnectionClosed,
)

from penstock.errors import ConfigurationError
from penstock.messaging.transports.rabbitmq.call_timeouts import answered
from penstock.store.outbox.queues import DEAD, EVENT_RECEIVED, is_announcement

QueueType = Literal["quorum", "classic"]

CONTROL = "control"

DIED = "died."
"""The prefix of the routing key with which RabbitMQ dead-letters messages of a queue; the queue's name follows. The
prefix is an argument of the queue, so that no publisher can forge where a message comes from."""

NEVER = 2_000_000_000
"""The delivery limit of the dead letters' own queue: a dead letter is not dropped, however often its handler fails.
Without a limit, RabbitMQ 4 would use 20, and 3.x has no value for "none"."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of objects on the broker. All of them begin with the prefix."""

    prefix: str

    @property
    def work_exchange(self) -> str:
        return self.prefix

    @property
    def events_exchange(self) -> str:
        return f"{self.prefix}.events"

    @property
    def dead_exchange(self) -> str:
        return f"{self.prefix}.dead"

    @property
    def control_exchange(self) -> str:
        return f"{self.prefix}.control"

    @property
    def status_exchange(self) -> str:
        return f"{self.prefix}.status"

    def queue(self, logical: str) -> str:
        return f"{self.prefix}.{logical}"

    def logical(self, queue: str) -> str:
        return queue.removeprefix(f"{self.prefix}.")

    def route(self, logical: str) -> tuple[str, bool]:
        """Return the exchange of a logical queue, and whether a queue must accept the message. An announcement may be
        dropped: no queue need be bound to its exchange."""
        if logical == DEAD:
            return self.dead_exchange, True
        return (self.status_exchange, False) if is_announcement(logical) else (self.work_exchange, True)


class Topology:
    """The declaration, or the check, of all objects on the broker."""

    def __init__(self, names: Names, *, declare: bool, queue_type: QueueType, delivery_limit: int) -> None:
        self.names = names
        self.declares = declare
        self._queue_type = queue_type
        self._delivery_limit = delivery_limit

    async def prepare(self, channel: Channel) -> None:
        """Declare the exchanges, the queue of dead letters and the queue of foreign events."""
        await self.exchanges(channel)
        await self.queue(channel, DEAD)
        await self.queue(channel, EVENT_RECEIVED)

    async def exchanges(self, channel: Channel) -> None:
        names = self.names
        await self._exchange(channel, names.work_exchange, "direct")
        await self._exchange(channel, names.events_exchange, "topic")
        await self._exchange(channel, names.dead_exchange, "topic")
        await self._exchange(channel, names.control_exchange, "fanout")
        await self._exchange(channel, names.status_exchange, "topic")

    async def bind(self, channel: Channel, logical: str) -> None:
        """Bind an existing queue. Raises ConnectionFailed, caused by a ChannelNotFoundEntity, if it does not exist."""
        name = self.names.queue(logical)
        async with answered():
            await channel.queue_declare(name, passive=True)
            for exchange, key in self.bindings(logical):
                await channel.queue_bind(name, exchange, key)

    async def queue(self, channel: Channel, logical: str) -> None:
        """Declare a queue and its bindings. Raises ConfigurationError with a hint."""
        name = self.names.queue(logical)
        with explained("queue", name):
            async with answered():
                if not self.declares:
                    await channel.queue_declare(name, passive=True)
                    return
                await channel.queue_declare(name, durable=True, arguments=self.arguments(logical))
                for exchange, key in self.bindings(logical):
                    await channel.queue_bind(name, exchange, key)

    def arguments(self, logical: str) -> dict[str, Any]:
        if self._queue_type == "classic":
            return {"x-queue-type": "classic", **({} if logical == DEAD else self._dead_letters(logical))}
        if logical == DEAD:
            return {"x-queue-type": "quorum", "x-delivery-limit": NEVER, "x-overflow": "reject-publish"}
        return {
            "x-queue-type": "quorum",
            "x-delivery-limit": self._delivery_limit,
            **self._dead_letters(logical),
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",  # at-least-once dead-lettering requires it
        }

    def _dead_letters(self, logical: str) -> dict[str, str]:
        return {
            "x-dead-letter-exchange": self.names.dead_exchange,
            "x-dead-letter-routing-key": DIED + logical,
        }

    def bindings(self, logical: str) -> list[tuple[str, str]]:
        if logical == DEAD:
            return [(self.names.dead_exchange, "#")]
        own = [(self.names.work_exchange, logical)]
        return [*own, (self.names.events_exchange, "#")] if logical == EVENT_RECEIVED else own

    async def _exchange(self, channel: Channel, name: str, kind: str) -> None:
        with explained("exchange", name):
            async with answered():
                await channel.exchange_declare(
                    name, exchange_type=kind, durable=True, passive=not self.declares
                )


@contextlib.contextmanager
def explained(kind: str, name: str) -> Iterator[None]:
    """Turn a refusal of the broker inside the block into an error with a hint."""
    try:
        yield
    except Exception as error:
        refusal = error if isinstance(error, ChannelClosed | ConnectionClosed) else error.__cause__
        hint = _hint(refusal, kind, name)
        if hint is None:
            raise
        raise ConfigurationError(
            f"RabbitMQ refused the {kind} {name}: {_said(refusal)}", hint=hint
        ) from refusal


def _hint(refusal: BaseException | None, kind: str, name: str) -> str | None:
    if isinstance(refusal, ChannelPreconditionFailed) and "queue limit" in str(refusal.args):
        return (
            "Raise the limit of queues (`rabbitmqctl set_vhost_limits`), or delete queues that nothing uses."
        )
    if isinstance(refusal, ChannelAccessRefused) and "access to topic" in str(refusal.args):
        return "Give the user the topic permissions listed in docs/transports.md (`rabbitmqctl set_topic_permissions`)."
    if isinstance(refusal, ChannelPreconditionFailed) and "inequivalent" not in str(refusal.args):
        return "This broker does not know these arguments: Penstock needs RabbitMQ 3.10 or later."
    if isinstance(refusal, ChannelPreconditionFailed):
        return (
            f"The {kind} exists with other arguments, and arguments cannot change. Set PENSTOCK_QUEUE_TYPE and "
            f"PENSTOCK_DELIVERY_LIMIT as they were, or use another prefix, or drain and delete {name} and start again."
        )
    if isinstance(refusal, ChannelAccessRefused):
        return (
            "Give the user the permissions listed in docs/transports.md, or declare the topology beforehand "
            "and set PENSTOCK_DECLARE_TOPOLOGY=false."
        )
    if isinstance(refusal, ChannelNotFoundEntity):
        return (
            "Declare it beforehand as docs/transports.md says, or set PENSTOCK_DECLARE_TOPOLOGY=true, so that executors and "
            "workers declare it."
        )
    if isinstance(refusal, ChannelLockedResource):
        return f"Another connection owns {name} exclusively: close it, or use another prefix."
    return None


def _said(refusal: BaseException | None) -> str:
    """Return RabbitMQ's own text, without the library's sentence around it."""
    text = str(refusal.args[0] if refusal is not None and refusal.args else refusal)
    match = re.search(r"[A-Z_]{6,} - (.*)", text, re.DOTALL)
    return (match.group(1) if match else text).rstrip('"')
