"""Broadcasts, all best effort: whoever does not hear of it finds it in the database some seconds later."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from penstock.messaging.messages import CancelRequested, Due, Sooner
from penstock.messaging.transports import Transport
from penstock.store.database import is_transient


async def tell(transport: Transport, what: Due) -> None:
    """Tell executors that schedules were changed, or timers set: one may be due sooner than the next they know of."""
    await _broadcast(transport, Sooner(what=what).model_dump_json())


async def tell_cancelled(transport: Transport, ids: Sequence[UUID]) -> None:
    """Tell workers to end these, if there are any."""
    if ids:
        await _broadcast(transport, CancelRequested(ids=list(ids)).model_dump_json())


async def _broadcast(transport: Transport, body: str) -> None:
    try:
        await transport.broadcast(body.encode())
    except Exception as error:
        if not is_transient(error):
            raise


class Teller:
    """Tells of timers without waiting for it. However many were set meanwhile, one broadcast tells of them."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._untold = False
        self._telling: asyncio.Task[None] | None = None

    def tell(self) -> None:
        self._untold = True
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell(), name="tell of timers")

    async def _tell(self) -> None:
        while self._untold:
            self._untold = False
            await tell(self._transport, "timers")
