"""The takes that wait for work of one route, and the consumer of that route.

A gateway consumes a route while one of its takes waits for the route. The gateway claims arrived work for one of the
takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import random
from collections.abc import Sequence
from uuid import UUID

import structlog

from penstock.errors import Undecodable
from penstock.messaging import envelope
from penstock.messaging.outbox import Publisher
from penstock.messaging.relay import offer_again
from penstock.messaging.transports import Delivery, Subscription
from penstock.store.session.database import is_transient
from penstock_api.session_pool import SessionPool
from penstock_api.work.remote_worker import RemoteWorker
from penstock_api.work.take import Take
from penstock_api.work.take_claims import TakeClaims
from penstock_api.work.take_permits import TakePermits

log = structlog.get_logger()

MOST_DELIVERIES = 100
"""The maximum number of deliveries that a consumer holds."""
WEIGHT = 0.2
"""The weight of the newest deliveries in the average number of executions in a delivery."""
BUSY_S = 0.1
"""Seconds for which deliveries are held while no take waits. Then they are returned to their route."""
IDLE_S = 30.0
"""Seconds without a take after which the consumer of a route is closed."""
PAUSE_S = 1.0
"""Seconds between two tries to consume a route, while the broker or the database is away."""
QUIET_S = 0.002
"""The seconds without a message after which takes get permits. A broker delivers a waiting message sooner."""
OFFERS_S = 1.0
"""Seconds after which permits are offered again if no take and no message has arrived."""

_parkings = itertools.count()
"""A counter that numbers the parkings that this process has noted."""


class RouteTakes:
    """The takes that wait for work of one queue, and the consumer of the queue. `parked`: the queue may have parked
    work that one of the takes can run. `parked` is true until the first look."""

    def __init__(
        self, queue: str, claims: TakeClaims, permits: TakePermits, publisher: Publisher, pool: SessionPool
    ) -> None:
        self.queue = queue
        self.note_parked()
        self._claims = claims
        self._permits = permits
        self._publisher = publisher
        self._pool = pool
        self._takes: dict[Take, None] = {}
        self._slots = 0
        """The slots of all these takes."""
        self._held = 1
        """The deliveries that the consumer may hold at once."""
        self._is_quiet = False
        """True while nothing arrives, and permits were offered."""
        self._changed = asyncio.Event()
        self._last: RemoteWorker | None = None
        self._size = 1.0
        """The average number of executions that a delivery names."""

    def note_parked(self) -> None:
        """Note that some process has parked work of this queue."""
        self.parked = True
        self.parking = next(_parkings)
        """The number of the last parking."""

    def add(self, take: Take) -> None:
        self._takes[take] = None
        self._slots += take.slots
        self._last = take.worker
        if not self._is_quiet or self._fits_badly() or self._permits.offer(self.queue, (take,)):
            self._changed.set()

    def remove(self, take: Take) -> None:
        if take not in self._takes:
            return
        del self._takes[take]
        self._slots -= take.slots
        has_used_permit = self.queue in take.permitted or bool(take.attempts)
        if not self._is_quiet or not self._takes or has_used_permit or self._fits_badly():
            self._changed.set()

    def next(self) -> Take | None:
        """Return the take that has waited longest, and move it to the end of the line; None if no take waits."""
        for take in list(self._takes):
            if take.waits and not take.turn.locked():
                del self._takes[take]
                self._takes[take] = None
                return take
        return None

    async def run(self) -> None:
        """Consume the queue while takes wait. Return after IDLE_S without a waiting take."""
        while await self._waits(IDLE_S):
            try:
                await self._consume()
            except Exception as error:
                reason = str(error)
                log.warning(
                    "gateway.route_not_consumed",
                    queue=self.queue,
                    reason=reason,
                    exc_info=not is_transient(error),
                )
                await asyncio.sleep(PAUSE_S * random.uniform(0.5, 1.5))

    async def _consume(self) -> None:
        self._held = self._prefetch()
        subscription = await self._publisher.transport.subscribe(self.queue, self._held)
        try:
            async with self._pool.session() as session:
                await offer_again(self._publisher.transport, session, self.queue, None)
            while True:
                if not await self._waits(BUSY_S):
                    await subscription.resize(0)
                    await self._return_all(subscription)
                    if not await self._waits(IDLE_S):
                        return
                    self._held = self._prefetch()
                    await subscription.resize(self._held)
                elif self._fits_badly():
                    self._held = self._prefetch()
                    await subscription.resize(self._held)
                if deliveries := await self._receive(subscription):
                    await self._give(subscription, deliveries)
        finally:
            await subscription.close()

    def _prefetch(self) -> int:
        """Return the number of deliveries that fill the slots of all takes."""
        return max(1, min(MOST_DELIVERIES, math.ceil(self._slots / self._size)))

    def _fits_badly(self) -> bool:
        """Return whether the consumer holds too few deliveries for the takes, or far too many."""
        return not self._held / 4 <= self._prefetch() <= self._held

    async def _waits(self, seconds: float) -> bool:
        """Wait at most `seconds` for a take. Return whether one waits."""
        if any(take.waits for take in self._takes):
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not any(take.waits for take in self._takes):
                    self._changed.clear()
                    await self._changed.wait()
        return any(take.waits for take in self._takes)

    async def _receive(self, subscription: Subscription) -> Sequence[Delivery]:
        """Return the arrived deliveries, or none as soon as the takes have changed. While nothing arrives, offer
        permits to the takes."""
        self._changed.clear()
        receiving = asyncio.ensure_future(subscription.receive(self._held))
        changed = asyncio.ensure_future(self._changed.wait())
        either = {receiving, changed}
        try:
            done, _ = await asyncio.wait(either, timeout=QUIET_S, return_when=asyncio.FIRST_COMPLETED)
            while not done:
                is_busy = self._permits.offer(self.queue, self._takes)
                self._is_quiet = not is_busy
                wait = QUIET_S if is_busy else OFFERS_S
                done, _ = await asyncio.wait(either, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            if not receiving.done():
                receiving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                return await receiving
            return ()
        finally:
            self._is_quiet = False
            changed.cancel()

    async def _give(self, subscription: Subscription, deliveries: Sequence[Delivery]) -> None:
        """Claim the executions that the deliveries name for the waiting takes, and ack the deliveries."""
        decodable, remaining = await self._decoded(subscription, deliveries)
        while remaining and await self._waits(BUSY_S):
            take = self.next()
            if take is None:  # each waiting take is being given work of another route
                await asyncio.sleep(0.002)
                continue
            async with take.turn:
                if take.waits:
                    await self._permits.settle(take)
                    if not take.attempts:
                        part, remaining = remaining[: take.slots], remaining[take.slots :]
                        self.parked = await self._claims.claim(take, self.queue, part) or self.parked
                    if take.attempts:
                        take.close()
                        self.remove(take)
        await self._settle(subscription, decodable, remaining)

    async def _decoded(
        self, subscription: Subscription, deliveries: Sequence[Delivery]
    ) -> tuple[list[Delivery], list[UUID]]:
        decodable: list[Delivery] = []
        ids: dict[UUID, None] = {}
        for delivery in deliveries:
            try:
                ids |= dict.fromkeys(envelope.decode(delivery.body).ids)
                decodable.append(delivery)
            except Undecodable as error:
                await subscription.dead_letter([delivery], f"Undecodable: {error.message}")
        self._size += WEIGHT * (len(ids) / len(deliveries) - self._size)
        self._size = max(1.0, self._size)
        return decodable, list(ids)

    async def _settle(
        self, subscription: Subscription, deliveries: Sequence[Delivery], unclaimed: Sequence[UUID]
    ) -> None:
        """Ack deliveries. First return the unclaimed executions to their route."""
        if unclaimed and self._last is not None:
            await self._claims.hand_back(self._last, self.queue, unclaimed)
        if deliveries:
            await subscription.ack(deliveries)

    async def _return_all(self, subscription: Subscription) -> None:
        """Return deliveries that arrived before the consumer stopped."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.02):
                while deliveries := await subscription.receive(100):
                    await asyncio.shield(self._return(subscription, deliveries))

    async def _return(self, subscription: Subscription, deliveries: Sequence[Delivery]) -> None:
        await self._settle(subscription, *await self._decoded(subscription, deliveries))

    async def take_parked(self) -> None:
        """Offer parked work once to each waiting take."""
        self.parked = False
        for take in list(self._takes):
            if take.waits and not take.turn.locked():
                await self.give_parked(take)

    async def give_parked(self, take: Take) -> None:
        """Claim parked work for a take, if it waits."""
        async with take.turn:
            if take.waits:
                await self._permits.settle(take)
            if take.waits and not take.attempts:
                parking = self.parking  # work that is parked during the claim gets a later number
                if await self._claims.claim_parked(take, self.queue):
                    self.parked = True
                take.worker.parkings[self.queue] = parking
            if take.attempts:
                take.close()
                self.remove(take)
