"""Telling executors that schedules were changed, so that they look at once."""

from __future__ import annotations

from penstock.database import is_transient
from penstock.messages import SchedulesChanged
from penstock.transports import Transport


async def tell(transport: Transport) -> None:
    """Best effort: executors that do not hear of it look some seconds later."""
    try:
        await transport.broadcast(SchedulesChanged().model_dump_json().encode())
    except Exception as error:
        if not is_transient(error):
            raise
