"""What is broadcast to executors: that schedules were changed, so that whoever sleeps until the next one looks again."""

from __future__ import annotations

import asyncio
import contextlib

from penstock import messages
from penstock.service import Parts


async def hear(parts: Parts, schedules: asyncio.Event) -> None:
    """Set `schedules` whenever they were changed. What is missed here is noticed at the loop's next look."""
    subscription = await parts.transport.listen()
    try:
        while deliveries := await subscription.receive(100):
            for delivery in deliveries:
                with contextlib.suppress(ValueError):  # it is about something else
                    messages.SchedulesChanged.model_validate_json(delivery.body)
                    schedules.set()
    finally:
        await subscription.close()
