"""A channel that is opened again whenever it is lost, and prepared anew each time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from aiormq.abc import AbstractChannel as Channel

from penstock.errors import ConfigurationError, ConnectionFailed
from penstock.messaging.transports.rabbitmq.connection import Link
from penstock.messaging.transports.rabbitmq.patience import (
    RECONNECT_WAIT,
    answered,
    close_channel,
    pause,
    persistently,
    reason,
    stop,
)

log = structlog.get_logger(__name__)

FRAMES = 300
"""Frames that are taken from the socket in one go: a hundred messages. With the library's 10 a batch is three."""


class KeptChannel:
    """`prepare` makes a new channel ready; `lost` hears that it is gone, before the next one is opened."""

    def __init__(
        self,
        link: Link,
        purpose: str,
        *,
        prepare: Callable[[Channel], Awaitable[None]],
        lost: Callable[[], None],
        confirms: bool = False,
    ) -> None:
        self._link = link
        self._purpose = purpose
        self._prepare = prepare
        self._lost = lost
        self._confirms = confirms
        self._renew = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self.current: Channel | None = None

    async def open(self, deadline: float) -> None:
        """Raises ConnectionFailed after `deadline` seconds, ConfigurationError at once."""
        async for attempt in persistently(self._purpose, deadline=deadline):
            with attempt:
                await self._open_one()
        self._keeper = asyncio.create_task(self._keep(), name=f"rabbitmq channel: {self._purpose}")

    def renew(self, why: str) -> None:
        """Give this channel up and open another. What it held unsettled comes again."""
        log.warning("rabbitmq_channel_renewed", purpose=self._purpose, reason=why)
        self._renew.set()

    async def close(self) -> None:
        if self._keeper is not None:
            await stop(self._keeper)
        channel, self.current = self.current, None
        self._lost()
        if channel is not None:
            await close_channel(channel)

    async def _keep(self) -> None:
        while True:
            assert self.current is not None
            await self._until_lost(self.current)
            await asyncio.sleep(pause())
            async for attempt in persistently(self._purpose, also=ConfigurationError, quiet=True):
                with attempt:
                    await self._open_one()

    async def _until_lost(self, channel: Channel) -> None:
        closing = channel.closing
        renewing = asyncio.create_task(self._renew.wait())
        try:
            await asyncio.wait([closing, renewing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            renewing.cancel()
        if closing.done() and self._link.up:
            error = None if closing.cancelled() else closing.exception()
            log.warning("rabbitmq_channel_lost", purpose=self._purpose, reason=reason(error))
        self.current = None
        self._lost()
        await close_channel(channel)

    async def _open_one(self) -> None:
        connection = await self._link.connection(wait=RECONNECT_WAIT)
        self._renew.clear()
        async with answered():
            channel = await connection.channel(
                publisher_confirms=self._confirms, on_return_raises=True, frame_buffer_size=FRAMES
            )
        try:
            await self._prepare(channel)
        except BaseException:
            self._lost()
            await close_channel(channel)
            raise
        if channel.is_closed:
            self._lost()
            raise ConnectionFailed("the channel closed at once")
        self.current = channel
