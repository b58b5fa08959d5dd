"""A foreign AMQP client, with the abilities of any program that has an address of the broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import UUID

import pika

T = TypeVar("T")


class Amqp:
    """A connection of its own for each call: rows run side by side, and pika's connections belong to one thread."""

    def __init__(self, url: str) -> None:
        self._url = url

    @contextmanager
    def channel(self) -> Iterator[Any]:
        connection = pika.BlockingConnection(pika.URLParameters(self._url))
        try:
            yield connection.channel()
        finally:
            connection.close()

    async def call(self, work: Callable[[Any], T]) -> T:
        """Do `work` with a channel."""

        def run() -> T:
            with self.channel() as channel:
                return work(channel)

        return await asyncio.to_thread(run)

    async def event(self, trigger: str, payload: Any, **properties: Any) -> None:
        """An event as docs/wire-format.md has it, confirmed."""
        await self.events(trigger, [payload], [properties.pop("message_id", None)], **properties)

    async def events(
        self, trigger: str, payloads: Sequence[Any], message_ids: Sequence[str | None], **properties: Any
    ) -> None:
        def publish(channel: Any) -> None:
            channel.confirm_delivery()
            for payload, message_id in zip(payloads, message_ids, strict=True):
                channel.basic_publish(
                    exchange="penstock.events",
                    routing_key=trigger,
                    body=payload if isinstance(payload, bytes) else json.dumps(payload),
                    properties=pika.BasicProperties(delivery_mode=2, message_id=message_id, **properties),
                    mandatory=True,
                )

        await self.call(publish)

    async def envelopes(self, type: str, ids: Sequence[UUID], *, queue: str, copies: int = 3) -> None:
        """Copies of an envelope, as if the broker delivered it again and again."""
        body = json.dumps({"v": 1, "type": type, "ids": [str(id) for id in ids]})

        def publish(channel: Any) -> None:
            channel.confirm_delivery()
            for _ in range(copies):
                channel.basic_publish(
                    exchange="",
                    mandatory=True,
                    routing_key=f"penstock.{queue}",
                    body=body,
                    properties=pika.BasicProperties(
                        type=type, content_type="application/json", delivery_mode=2
                    ),
                )

        await self.call(publish)

    async def depth(self, queue: str) -> int:
        """Messages that wait in a queue."""
        return int(
            await self.call(
                lambda channel: channel.queue_declare(f"penstock.{queue}", passive=True).method.message_count
            )
        )

    async def waits(self, queue: str) -> bool:
        return await self.depth(queue) > 0

    async def empty(self, queue: str) -> bool:
        """Return true if all that was there has been taken."""
        return await self.depth(queue) == 0

    async def purge(self, queue: str) -> int:
        """Lose what waits in a queue; how many messages there were."""
        return int(
            await self.call(lambda channel: channel.queue_purge(f"penstock.{queue}").method.message_count)
        )

    async def bind(self, exchange: str, queue: str, key: str) -> None:
        """A queue of one's own that hears what is announced."""

        def declare(channel: Any) -> None:
            channel.queue_declare(queue)
            channel.queue_bind(queue, exchange, key)

        await self.call(declare)

    async def take(self, queue: str) -> list[tuple[str, Any]]:
        """All that waits in a queue of one's own: (routing key, document)."""

        def get(channel: Any) -> list[tuple[str, Any]]:
            messages: list[tuple[str, Any]] = []
            while True:
                method, _, body = channel.basic_get(queue, auto_ack=True)
                if method is None:
                    return messages
                messages.append((method.routing_key, json.loads(body)))

        return await self.call(get)
