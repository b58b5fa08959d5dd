"""A channel that is opened again whenever it is lost, and prepared again each time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from aiormq.abc import AbstractChannel as Channel

from penstock.errors import ConfigurationError, ConnectionFailed
from penstock.messaging.transports.rabbitmq.call_timeouts import (
    RECONNECT_WAIT,
    answered,
    close_channel,
    pause,
    persistently,
    reason,
)
from penstock.messaging.transports.rabbitmq.connection import Link

log = structlog.get_logger(__name__)

FRAMES = 300
"""Frames that are read from the socket at once: a hundred messages. With the library's 10, a batch has three
messages."""


class KeptChannel:
    """A channel that is opened again after each loss. `prepare` sets up a new channel. `on_loss` is called when a
    channel is gone, before the next one is opened."""

    def __init__(
        self,
        link: Link,
        purpose: str,
        *,
        prepare: Callable[[Channel], Awaitable[None]],
        on_loss: Callable[[], None],
        confirms: bool = False,
    ) -> None:
        self._link = link
        self._purpose = purpose
        self._prepare = prepare
        self._on_loss = on_loss
        self._confirms = confirms
        self._renew = asyncio.Event()
        self._gone = link.gone
        self._keeper: asyncio.Task[None] | None = None
        self.current: Channel | None = None

    async def open(self, deadline: float) -> None:
        """Open the channel. Raises ConnectionFailed after `deadline` seconds, ConfigurationError at once."""
        await persistently(self._purpose, self._open_one, deadline=deadline)
        self.keep_open()

    def keep_open(self) -> None:
        """Keep a channel open from now on, whether there is one yet or not."""
        self._keeper = self._link.supervisor.start(f"rabbitmq channel: {self._purpose}", self._keep)

    def renew(self, why: str) -> None:
        """Close this channel and open another. Its unsettled deliveries come again."""
        log.warning("rabbitmq.channel_renewed", purpose=self._purpose, reason=why)
        self._renew.set()

    async def close(self) -> None:
        if self._keeper is not None:
            await self._link.supervisor.stop(self._keeper)
        channel, self.current = self.current, None
        self._on_loss()
        if channel is not None:
            await close_channel(channel)

    async def _keep(self) -> None:
        """Keep a channel open. The loop can start in any state in which an earlier run of it stopped."""
        while True:
            if self.current is not None:
                await self._until_lost(self.current)
            await asyncio.sleep(pause())
            await persistently(self._purpose, self._open_one, also=ConfigurationError, quiet=True)

    async def _until_lost(self, channel: Channel) -> None:
        closing = channel.closing
        # A connection that was given up because it does not answer may never report its channels as closed.
        waits = [asyncio.create_task(event.wait()) for event in (self._renew, self._gone)]
        try:
            await asyncio.wait([closing, *waits], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for other in waits:
                other.cancel()
        if closing.done() and self._link.up:
            error = None if closing.cancelled() else closing.exception()
            log.warning("rabbitmq.channel_lost", purpose=self._purpose, reason=reason(error))
        self.current = None
        self._on_loss()
        await close_channel(channel)

    async def _open_one(self) -> None:
        connection = await self._link.connection(wait=RECONNECT_WAIT)
        self._gone = self._link.gone
        self._renew.clear()
        try:
            async with answered():
                channel = await connection.channel(
                    publisher_confirms=self._confirms, on_return_raises=True, frame_buffer_size=FRAMES
                )
        except ConnectionFailed as error:
            if isinstance(error.__cause__, TimeoutError) and not connection.is_closed:
                # A proxy in between may have dropped this connection silently: no answer will ever arrive on it.
                self._link.renew(f"a channel to {self._purpose} was not opened: {error.message}")
            raise
        try:
            await self._prepare(channel)
        except BaseException:
            self._on_loss()
            await close_channel(channel)
            raise
        if channel.is_closed:
            self._on_loss()
            raise ConnectionFailed("the channel closed at once")
        self.current = channel
