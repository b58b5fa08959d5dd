"""The number of messages that a consumer asks for, so that the bytes that it holds stay within a bound.

AMQP bounds the number of unsettled messages only, and RabbitMQ sends as many as that at once. So a consumer begins with a few
and asks for more while what it gets is small; and where messages grow large all of a sudden, what is on its way already stays
in the socket until there is room.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from aiormq.abc import AbstractChannel as Channel
from aiormq.abc import FrameType
from pamqp.body import ContentBody
from pamqp.header import ContentHeader

FIRST = 16
"""Messages that are asked for before anything is known of their sizes."""

GROWTH = 6
"""Times as many are asked for next: a few steps to the whole prefetch, each of which is one more consumer on the channel."""


class Window:
    """`most`: bytes that are held at the most; the message that crosses the bound is still taken, whatever its size."""

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
        """Have the channel begin another message only when there is room. What it does not take stays in the socket, and then
        with the broker: aiormq itself takes whatever is sent."""
        next_frame: Callable[[], Awaitable[FrameType]] = channel._get_frame  # type: ignore[attr-defined]
        left = 0  # bytes of the message that is being taken

        async def when_there_is_room() -> FrameType:
            nonlocal left
            if not left:
                await self._room.wait()
            frame = await next_frame()
            if isinstance(frame, ContentHeader):
                left = frame.body_size or 0
                self.arrived(left)
            elif isinstance(frame, ContentBody):
                left -= len(frame.value)
            return frame

        channel._get_frame = when_there_is_room  # type: ignore[attr-defined]

    def arrived(self, size: int) -> None:
        """A message of so many bytes is held from now on."""
        self._held += size
        if self._held >= self._most:
            self._room.clear()
        self.messages = min(self.messages, self._fitting(size))

    def settled(self, sizes: Sequence[int]) -> None:
        """These are held no more. Where they were many and all small, more may be asked for."""
        self._held -= sum(sizes)
        if self._held < self._most:
            self._room.set()
        if 2 * len(sizes) >= self.messages:
            self.messages = min(GROWTH * self.messages, self._fitting(max(sizes)))

    def emptied(self) -> None:
        """Nothing is held any more: the channel is gone."""
        self._held = 0
        self._room.set()

    def _fitting(self, size: int) -> int:
        """Return the number of messages of that size that there is room for."""
        return max(1, self._most // max(1, size))
