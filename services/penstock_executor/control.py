"""Hints that something may be due sooner than a loop thinks, so that whoever sleeps until the next one looks again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.messaging.messages import Due, Sooner
from penstock.service.assembly import Parts


async def hear(parts: Parts, woken: Mapping[Due, asyncio.Event]) -> None:
    """Set the event of what is broadcast to be due. What is missed here is noticed at the loop's next look."""
    subscription = await parts.transport.listen()
    try:
        while deliveries := await subscription.receive(100):
            for delivery in deliveries:
                with contextlib.suppress(ValueError):  # it is about something else
                    woken[Sooner.model_validate_json(delivery.body).what].set()
    finally:
        await subscription.close()


@dataclass(slots=True)
class Soon:
    """Sets an event so many seconds after a hint. Hints until then are one."""

    event: asyncio.Event
    seconds: float
    _coming: bool = False

    def hint(self) -> None:
        if not self._coming:
            self._coming = True
            asyncio.get_running_loop().call_later(self.seconds, self._come)

    def _come(self) -> None:
        self._coming = False
        self.event.set()
