"""Wake-ups of the loops that sleep until something is due, if that becomes due earlier."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.messaging.messages import Due, Sooner
from penstock.service.assembly import Parts


async def wake_on_broadcasts(parts: Parts, woken: Mapping[Due, asyncio.Event]) -> None:
    """Set the event of each kind of work that a broadcast says is due sooner. A loop that misses a broadcast polls
    some seconds later."""
    subscription = await parts.transport.listen()
    try:
        while deliveries := await subscription.receive(100):
            for delivery in deliveries:
                with contextlib.suppress(ValueError):  # a broadcast about something else
                    woken[Sooner.model_validate_json(delivery.body).what].set()
    finally:
        await subscription.close()


@dataclass(slots=True)
class DelayedWakeup:
    """A wake-up that sets an event some seconds after the first request. Requests in between share it."""

    event: asyncio.Event
    seconds: float
    _pending: bool = False

    def request(self) -> None:
        if not self._pending:
            self._pending = True
            asyncio.get_running_loop().call_later(self.seconds, self._wake)

    def _wake(self) -> None:
        self._pending = False
        self.event.set()
