"""The way of staged messages from the outbox to the transport (I8): the process that staged them publishes them after
its commit, otherwise a relay does (relay.py).

Rows are deleted once the broker has confirmed, in bulk and with relaxed commits: after a lost deletion the message is
published again, which is safe.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

import structlog

from penstock.messaging import messages
from penstock.messaging.broadcast import CoalescedBroadcast, due_sooner, work_parked
from penstock.messaging.settled_rows import SettledRows
from penstock.messaging.transports import Transport
from penstock.store.executions import awaited
from penstock.store.outbox import queues
from penstock.store.session import notifications
from penstock.store.session.database import Database, is_transient
from penstock.store.session.staged_messages import StagedMessage

log = structlog.get_logger()


class Publisher:
    """The publisher of a process's staged messages. The handler does not wait for the broker's confirmation."""

    def __init__(self, transport: Transport, database: Database) -> None:
        self.transport = transport
        self._tells = database.session()
        self._timers = CoalescedBroadcast(partial(due_sooner, transport, "timers"), "timers")
        self._parked: dict[str, CoalescedBroadcast] = {}
        self._assigned: dict[str, CoalescedBroadcast] = {}
        self._settled = SettledRows(database)
        self._under_way: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(64)

    def publish(self, staged: Sequence[StagedMessage]) -> None:
        """Start publishing. A message that is not confirmed stays in the outbox, for a relay. Hints are sent once, or
        not at all."""
        stored = [message for message in staged if message.outbox_id]
        hints = [
            message
            for message in staged
            if not message.outbox_id and not message.queue.startswith(queues.PLACED)
        ]
        if (
            self.transport.outbox_is_queue
        ):  # the outbox row is the queued message, so only announcements are published
            self.transport.wake({message.queue for message in stored})
            stored = [message for message in stored if queues.is_announcement(message.queue)]
        if stored:
            self._start(self._publish(stored), "publish")
        if hints:
            self._start(self._hint(hints), "hint")

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _publish(self, staged: Sequence[StagedMessage]) -> None:
        async with self._room:
            try:
                confirmed = await self.transport.publish(
                    [messages.message(message.outbox_id, message.queue, message.ids) for message in staged]
                )
            except Exception as error:
                if not is_transient(error):
                    log.exception("publish.failed")
                return
        self.settle([message for message, ok in zip(staged, confirmed, strict=True) if ok])

    async def _hint(self, hints: Sequence[StagedMessage]) -> None:
        """Send hints to the processes that wait. A process that misses a hint polls later."""
        if any(message.queue == queues.TIMERS_SET for message in hints):
            await self._timers.send()
        for message in hints:
            if message.queue.startswith(queues.PARKED):
                await self.parked(message.queue.removeprefix(queues.PARKED))
            if message.queue.startswith(queues.ASSIGNED):
                await self._tell_assigned(message.queue)
            try:
                if message.queue.startswith(queues.AWAITED):
                    await awaited.tell(self._tells, message.queue, message.ids)
            except Exception as error:
                if not is_transient(error):
                    log.exception("publish.not_told")

    async def _tell_assigned(self, channel: str) -> None:
        """Tell the worker with this channel to look for its claims. One notification serves all claims that were
        committed before it is sent."""

        async def tell() -> None:
            try:
                await notifications.notify(self._tells, channel, "")
            except Exception as error:
                if not is_transient(error):
                    log.exception("publish.not_told")

        broadcast = self._assigned.setdefault(channel, CoalescedBroadcast(tell, channel))
        await broadcast.send()
        if self._assigned.get(channel) is broadcast:
            del self._assigned[channel]

    def parked(self, queue: str) -> asyncio.Task[None]:
        """Tell workers that work of this queue was parked. Return the task of the broadcast."""
        if queue not in self._parked:
            tell = partial(work_parked, self.transport, queue)
            self._parked[queue] = CoalescedBroadcast(tell, f"{queue} parked")
        return self._parked[queue].send()

    def settle(self, done: Sequence[StagedMessage]) -> None:
        """Delete these messages from the outbox soon: they are published, or need not be."""
        self._settled.add(message.outbox_id for message in done)

    async def flush(self) -> None:
        """Wait until the running publications are confirmed, or left to a relay. Wait only a moment for the deletion
        of their rows: rows that stay are published once more."""
        while self._under_way:
            await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._settled.flush()

    async def close(self) -> None:
        """Wait at most two seconds for running publications; a relay publishes the rest."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                await self.flush()
        for task in self._under_way:
            task.cancel()
        self._settled.close()
