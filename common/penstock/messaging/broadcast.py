"""Broadcasts, all best effort: a process that misses one finds the change in the database some seconds later."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from penstock.messaging.messages import CancelRequested, Due, Sooner
from penstock.messaging.transports import Transport
from penstock.store.database import is_transient


async def due_sooner(transport: Transport, what: Due) -> None:
    """Tell executors that schedules were changed, or timers set: one may be due sooner than the next they know of."""
    await _broadcast(transport, Sooner(what=what).model_dump_json())


async def cancel_requested(transport: Transport, ids: Sequence[UUID]) -> None:
    """Tell workers to end these, if there are any."""
    if ids:
        await _broadcast(transport, CancelRequested(ids=list(ids)).model_dump_json())


async def _broadcast(transport: Transport, body: str) -> None:
    try:
        await transport.broadcast(body.encode())
    except Exception as error:
        if not is_transient(error):
            raise


class TimerBroadcast:
    """Tells executors that timers were set, without making anybody wait for it. However many were set while one broadcast
    was under way, the next one tells of all of them."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._pending = False
        self._sending: asyncio.Task[None] | None = None

    def send(self) -> None:
        self._pending = True
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send(), name="broadcast timers")

    async def _send(self) -> None:
        while self._pending:
            self._pending = False
            await due_sooner(self._transport, "timers")
