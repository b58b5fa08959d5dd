"""Broadcasts, all best effort: a process that misses one finds the change in the database some seconds later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from penstock.messaging.messages import CancelRequested, Due, Sooner, WorkParked
from penstock.messaging.transports import Transport
from penstock.store.session.database import is_transient


async def due_sooner(transport: Transport, kind: Due) -> None:
    """Tell executors that schedules were changed, or timers set: one may be due sooner than the next that they know
    of."""
    await _broadcast(transport, Sooner(what=kind).model_dump_json())


async def cancel_requested(transport: Transport, ids: Sequence[UUID]) -> None:
    """Tell workers to end these executions, if there are any."""
    if ids:
        await _broadcast(transport, CancelRequested(ids=list(ids)).model_dump_json())


async def work_parked(transport: Transport, queue: str) -> None:
    """Tell the workers of this queue that work was parked: workers that can run it claim it."""
    await _broadcast(transport, WorkParked(queue=queue).model_dump_json())


async def _broadcast(transport: Transport, body: str) -> None:
    try:
        await transport.broadcast(body.encode())
    except Exception as error:
        if not is_transient(error):
            raise


class CoalescedBroadcast:
    """A broadcast of one constant text, for which no caller waits. If it is requested while one is under way, one
    more is sent afterwards, for all these requests. `name` is that of its task."""

    def __init__(self, tell: Callable[[], Awaitable[None]], name: str) -> None:
        self._tell = tell
        self._name = name
        self._pending = False
        self._sending: asyncio.Task[None] | None = None

    def send(self) -> asyncio.Task[None]:
        """Start the broadcast, if it is not under way. Return its task, which ends after this request was sent."""
        self._pending = True
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send(), name=f"broadcast {self._name}")
        return self._sending

    async def _send(self) -> None:
        while self._pending:
            self._pending = False
            await self._tell()
