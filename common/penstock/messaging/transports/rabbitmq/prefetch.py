"""The number of messages that a consumer asks for, so that their bytes stay within a bound.

AMQP bounds only the number of unsettled messages, and RabbitMQ sends that many at once. So a consumer begins with a
few, and asks for more while the messages are small. If messages suddenly become large, those on their way stay in the
socket until there is room.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from aiormq.abc import AbstractChannel as Channel
from aiormq.abc import FrameType
from pamqp.body import ContentBody
from pamqp.header import ContentHeader

FIRST = 16
"""Messages that are asked for before their sizes are known."""

GROWTH = 6
"""The factor by which the number grows: the whole prefetch is reached in a few steps, each of which is one more
consumer."""


class Window:
    """A bound for the bytes of unsettled messages. `limit`: the maximum bytes; the message that exceeds it is still
    accepted, whatever its size."""

    def __init__(self, limit: int) -> None:
        self.messages = FIRST
        self._most = limit
        self._held = 0
        self._room = asyncio.Event()
        self._room.set()

    @property
    def has_room(self) -> bool:
        return self._room.is_set()

    def hold_back(self, channel: Channel) -> None:
        """Make the channel begin another message only if there is room. Unread messages stay in the socket, and then
        with the broker; aiormq by itself reads all that is sent."""
        next_frame: Callable[[], Awaitable[FrameType]] = channel._get_frame  # type: ignore[attr-defined]
        remaining = 0  # bytes of the message that is being taken

        async def when_there_is_room() -> FrameType:
            nonlocal remaining
            if not remaining:
                await self._room.wait()
            frame = await next_frame()
            if isinstance(frame, ContentHeader):
                remaining = frame.body_size or 0
                self.arrived(remaining)
            elif isinstance(frame, ContentBody):
                remaining -= len(frame.value)
            return frame

        channel._get_frame = when_there_is_room  # type: ignore[attr-defined]

    def arrived(self, size: int) -> None:
        """Count a message of `size` bytes as held."""
        self._held += size
        if self._held >= self._most:
            self._room.clear()
        self.messages = min(self.messages, self._fitting(size))

    def settled(self, sizes: Sequence[int]) -> None:
        """Count messages as no longer held. If they were many and all small, more may be asked for."""
        self._held -= sum(sizes)
        if self._held < self._most:
            self._room.set()
        if 2 * len(sizes) >= self.messages:
            self.messages = min(GROWTH * self.messages, self._fitting(max(sizes)))

    def emptied(self) -> None:
        """Count nothing as held: the channel is gone."""
        self._held = 0
        self._room.set()

    def _fitting(self, size: int) -> int:
        """Return the number of messages of `size` bytes that fit."""
        return max(1, self._most // max(1, size))
