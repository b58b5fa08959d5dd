"""The consumer of a route, which takes work while the worker has free slots."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from penstock.errors import Undecodable
from penstock.messaging import envelope
from penstock.messaging.transports import Delivery, Subscription
from penstock_worker.claiming.claims import Claiming
from penstock_worker.records.slots import Slots

BUSY = 0.1
"""Seconds for which a worker without a free slot keeps deliveries, before it returns them."""


class RouteConsumer:
    """The consumer of one queue. A delivery is acked once its claim is committed."""

    def __init__(
        self,
        subscription: Subscription,
        prefetch: int,
        slots: Slots,
        claiming: Claiming,
        stopping: asyncio.Event,
    ) -> None:
        self._subscription = subscription
        self._prefetch = prefetch
        self._slots = slots
        self._claiming = claiming
        self._permits = claiming.permits
        self._stopping = stopping
        self._took_nothing = False

    async def run(self) -> None:
        """Consume until the worker is asked to stop."""
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            while not self._stopping.is_set():
                if not await self._wait_for_slot():
                    continue
                deliveries = await self._receive(stop)
                if deliveries:
                    await self._take(deliveries)
        finally:
            stop.cancel()

    async def _wait_for_slot(self) -> bool:
        """Return True if a slot is free, or becomes free within BUSY seconds. Otherwise stop consuming, return the
        deliveries to their route, wait for a slot, and return False. So no work waits here while another worker of the
        route has a free slot."""
        if self._slots.free:
            return True
        if self._slots.can_claim:
            # Only a batch can take another attempt. If the next messages are for other actions, they go back to their
            # route.
            if self._took_nothing:
                await asyncio.sleep(BUSY)
            return True
        self._permits.is_full(self._subscription.queue)
        if await self._slots.any_free(BUSY):
            return True
        await self._subscription.resize(0)
        while not self._slots.can_claim and not self._stopping.is_set():
            await self._hand_back()
            await self._slots.any_free(1)
        await self._subscription.resize(self._prefetch)
        return False

    async def _hand_back(self) -> None:
        """Return to their route the deliveries that arrived before the consumer stopped. A claim without slots does
        that."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.02):
                while True:
                    deliveries = await self._subscription.receive(100)
                    await asyncio.shield(self._take(deliveries))

    async def _take(self, deliveries: Sequence[Delivery]) -> None:
        ids: dict[UUID, None] = {}
        good: list[Delivery] = []
        for delivery in deliveries:
            try:
                ids |= dict.fromkeys(envelope.decode(delivery.body).ids)
                good.append(delivery)
            except Undecodable as error:
                await self._subscription.dead_letter([delivery], f"Undecodable: {error.message}")
        if not good:
            return
        self._took_nothing = not await self._claiming.claim(self._subscription.queue, list(ids))
        for _ in range(2):  # let the runner begin the work before the ack is written
            await asyncio.sleep(0)
        await self._subscription.ack(good)

    async def _receive(self, stop: asyncio.Future[Any]) -> Sequence[Delivery]:
        """Return the arrived deliveries; an empty list when the worker is asked to stop."""
        receive = asyncio.ensure_future(self._subscription.receive(self._prefetch))
        self._permits.waits(self._subscription.queue)
        await asyncio.wait({receive, stop}, return_when=asyncio.FIRST_COMPLETED)
        self._permits.has_message(self._subscription.queue)
        if receive.done():
            return receive.result()
        receive.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            return await receive
        return ()
