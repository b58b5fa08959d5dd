"""The takes of workers that wait for work, and the consumers of their routes.

A gateway consumes a route while a take of it waits. What arrives is claimed for one of the takes, as a worker with a
session with the database claims it for itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import random
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from typing import Any
from uuid import UUID

import structlog

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.errors import Undecodable
from penstock.language.terms.ids import new_id
from penstock.messaging import envelope
from penstock.messaging.outbox import Publisher
from penstock.messaging.relay import offer_again
from penstock.messaging.transports import Delivery, Subscription
from penstock.store.executions import attempts, remote_attempts
from penstock.store.executions.attempts import ClaimAnswer
from penstock.store.session.database import Session, is_transient, retried
from penstock_api.session_pool import SessionPool
from penstock_api.work.definitions import Definitions
from penstock_api.work.held_attempts import HeldAttempts
from penstock_api.work.remote_worker import RemoteWorker
from penstock_api.work.take import Take, claim_of
from penstock_api.work.take_permits import TakePermits

log = structlog.get_logger()

MOST_DELIVERIES = 100
"""Deliveries that a consumer holds at once."""
WEIGHT = 0.2
"""The weight of the newest deliveries in the average number of executions of one."""
BUSY_S = 0.1
"""Seconds for which deliveries are kept without a take that waits, before they go back on their route."""
IDLE_S = 30.0
"""Seconds without a take after which the consumer of a route is closed."""
PAUSE_S = 1.0
"""Seconds between two tries to consume a route, while the broker or the database is away."""
QUIET_S = 0.002
"""Seconds without a message after which takes get permits. A broker delivers what waits sooner than that."""
OFFERS_S = 1.0
"""Seconds after which permits are offered again, where nothing happens."""

TOGETHER_S = 1.0
"""Seconds between the ends of long waits."""
LONG_S = 30.0
"""The least seconds of a long wait."""

_parkings = itertools.count()
"""The numbers of the parkings that this process has noted."""

Claiming = Callable[[Session, UUID, int], Awaitable[ClaimAnswer]]
"""A function that claims at most so many executions under a claim id."""


def end_of_wait(now: float, seconds: float) -> float:
    """Return the instant at which a wait ends. Long waits end together, a little early, at whole TOGETHER_S: a process that
    wakes once for the takes of many idle workers costs less than one that wakes for each of them."""
    until = now + seconds
    return until if seconds < LONG_S else until // TOGETHER_S * TOGETHER_S


class Claims:
    """The claims for takes."""

    def __init__(
        self, pool: SessionPool, publisher: Publisher, definitions: Definitions, held: HeldAttempts
    ) -> None:
        self._pool = pool
        self._publisher = publisher
        self._definitions = definitions
        self._held = held

    async def claim(self, take: Take, queue: str, ids: Sequence[UUID]) -> bool:
        """Claim at most as many of `ids` as the take has slots. Return whether work was parked that its worker could not
        take. What is not claimed goes back on its route."""
        remaining, parked = list(ids), False
        while remaining:

            async def claim(
                session: Session, claim: UUID, limit: int, ids: Sequence[UUID] = remaining
            ) -> ClaimAnswer:
                claimant = take.worker.claimant(claim, self._definitions)
                return await remote_attempts.claim(session, claimant, queue, ids, limit)

            answer = await self._claimed(take, claim)
            parked = parked or answer.parked
            claimed = {attempt.execution_id for attempt in answer.attempts}
            turns = len(remaining) - len(claimed) if answer.unknown_definitions else 0
            remaining = [id for id in remaining if id not in claimed][:turns]
        if parked:
            self._publisher.parked(queue)
        return parked

    async def claim_parked(self, take: Take, queue: str) -> bool:
        """Claim parked work for a take. Return whether there may be more of it."""
        while True:

            async def claim(session: Session, claim: UUID, limit: int) -> ClaimAnswer:
                claimant = take.worker.claimant(claim, self._definitions)
                return await remote_attempts.claim_parked(session, claimant, queue, limit)

            answer = await self._claimed(take, claim)
            if not answer.unknown_definitions:
                return answer.parked

    async def hand_back(self, worker: RemoteWorker, queue: str, ids: Sequence[UUID]) -> None:
        """Return executions to their route that no take waits for."""
        take = Take(worker, new_id(), 0)
        await self.claim(take, queue, ids)

    async def _claimed(self, take: Take, claim: Claiming) -> ClaimAnswer:
        """Claim for a take, and look up the definitions that its gateway has not met."""
        tries = 0

        async def ask() -> ClaimAnswer:
            nonlocal tries
            tries += 1
            async with self._pool.session() as session:
                # A try before this one may have been committed and its answer lost: what it took is under its claim.
                claimed = (
                    len(await attempts.claimed(session, take.claim)) if tries > 1 else len(take.attempts)
                )
                answer = await claim(session, take.claim, max(0, take.slots - claimed))
                if tries > 1:
                    earlier = {entry.event.execution_id for entry in take.attempts}
                    rows = await attempts.claimed(session, take.claim)
                    answer.attempts = [row for row in rows if row.execution_id not in earlier]
                await self._definitions.look_up(
                    session,
                    [
                        *answer.unknown_definitions,
                        *(attempt.definition_id for attempt in answer.attempts if tries > 1),
                    ],
                )
                return answer

        answer = await retried(ask)
        self._publisher.publish(answer.staged)
        take.attempts += self._held.begin(take.worker, take.claim, answer.attempts)
        return answer


class RouteTakes:
    """The takes that wait for work of one queue, and its consumer. `parked` says that work may be parked there that one of
    them can take: so it is at first, until it was looked for."""

    def __init__(
        self, queue: str, claims: Claims, permits: TakePermits, publisher: Publisher, pool: SessionPool
    ) -> None:
        self.queue = queue
        self.has_parked()
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

    def has_parked(self) -> None:
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
        """Return the take that has waited longest, and put it behind the others; None if no take waits."""
        for take in list(self._takes):
            if take.waits and not take.turn.locked():
                del self._takes[take]
                self._takes[take] = None
                return take
        return None

    async def run(self) -> None:
        """Consume the queue while takes wait. Return when none has waited for IDLE_S."""
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
        """Return what has arrived; nothing as soon as the takes have changed. Where nothing arrives, takes get permits."""
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
        """Claim what the deliveries name for the takes that wait, and ack the deliveries."""
        decodable, remaining = await self._decoded(subscription, deliveries)
        while remaining and await self._waits(BUSY_S):
            take = self.next()
            if take is None:  # each of them is being given something of another route
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
        """Ack deliveries. What no take was given goes back on its route first."""
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
        """Give parked work to takes that wait. Each of them is asked for once."""
        self.parked = False
        for take in list(self._takes):
            if take.waits and not take.turn.locked():
                await self.give_parked(take)

    async def give_parked(self, take: Take) -> None:
        """Give a take parked work, if it waits."""
        async with take.turn:
            if take.waits:
                await self._permits.settle(take)
            if take.waits and not take.attempts:
                parking = self.parking  # what is parked during the claim has another number
                if await self._claims.claim_parked(take, self.queue):
                    self.parked = True
                take.worker.parkings[self.queue] = parking
            if take.attempts:
                take.close()
                self.remove(take)


class Takes:
    """All takes of this gateway."""

    def __init__(
        self,
        pool: SessionPool,
        publisher: Publisher,
        definitions: Definitions,
        held: HeldAttempts,
        permits: TakePermits,
        start: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        """`start` runs something beside the calls, under a name."""
        self._pool = pool
        self._permits = permits
        self._publisher = publisher
        self._held = held
        self._claims = Claims(pool, publisher, definitions, held)
        self._start = start
        self._routes: dict[str, RouteTakes] = {}
        self.look = asyncio.Event()
        """Set when parked work should be looked for."""
        self._is_stopping = False
        self.waiting: dict[Take, None] = {}
        self._latest: dict[UUID, Take] = {}
        """The last call of each take, by claim id, until it is answered."""

    async def take(
        self,
        worker: RemoteWorker,
        request: UUID,
        slots: int,
        seconds: float,
        *,
        again: bool,
        until: asyncio.Future[Any] | None = None,
    ) -> list[OwnedAttempt]:
        """Wait at most `seconds`, or until `until` is done, for attempts of the worker, at most `slots`. `again`: this take was
        sent before, and may have been answered. If the caller is cancelled, what was claimed for it goes back on its route."""
        take = Take(
            worker,
            claim_of(worker.id, request),
            slots,
            time.monotonic() + seconds / 2,
            is_brief=until is not None,
        )
        await self._replace(take)
        if again and await self._before(take):
            return await self._given(take)
        self._latest[take.claim] = take
        self.waiting[take] = None
        routes = [self._route(queue) for queue in worker.queues]
        for route in routes:
            route.add(take)
        if any(route.parked for route in routes):
            self.look.set()
        elif unasked := [route for route in routes if worker.parkings.get(route.queue) != route.parking]:
            self._start(self._look_for(take, unasked), "look for parked work")
        timer = None
        try:
            try:
                if self._is_stopping:
                    take.close()
                elif until is not None:
                    until.add_done_callback(lambda _: take.close())
                else:
                    loop = asyncio.get_running_loop()
                    timer = loop.call_at(end_of_wait(loop.time(), seconds), take.close)
                await take.closed
            finally:
                if timer is not None:
                    timer.cancel()
                self._close(take)
            async with take.turn:  # a claim for it may be under way
                await self._permits.settle(take)
                self._answer(take)
            return await self._given(take)
        except asyncio.CancelledError:
            self._start(self._return(take), "return a take")
            raise
        except Exception:
            self._answer(take)
            raise

    def parked_on(self, queue: str) -> None:
        """Note that some process has parked work of this queue."""
        route = self._routes.get(queue)
        if route is not None:
            route.has_parked()
            self.look.set()

    async def look_for_parked(self, every: float) -> None:
        """Give parked work to takes: when it is parked, and now and then, as broadcasts may be missed."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(every * random.uniform(0.8, 1.2)):
                    await self.look.wait()
            was_told = self.look.is_set()
            self.look.clear()
            routes = list(self._routes.values())
            try:
                if not was_told and routes and self.waiting:
                    async with self._pool.session() as session:
                        queues = await remote_attempts.parked_queues(session, list(self._routes))
                    for route in routes:
                        if route.queue in queues:
                            route.has_parked()
                for route in routes:
                    if route.parked:
                        await route.take_parked()
            except Exception as error:
                log.warning(
                    "gateway.parked_work_not_taken", reason=str(error), exc_info=not is_transient(error)
                )

    async def _look_for(self, take: Take, routes: Sequence[RouteTakes]) -> None:
        """Give a take what is parked on routes. Its worker is new, or had no take when it was parked, and those that were asked
        may lack the action."""
        parkings = {route.queue: route.parking for route in routes}
        try:
            async with self._pool.session() as session:
                queues = await remote_attempts.parked_queues(session, list(parkings))
            for route in routes:
                if route.queue in queues:
                    await route.give_parked(take)
                else:
                    take.worker.parkings[route.queue] = parkings[route.queue]
        except Exception as error:  # look_for_parked looks again
            log.warning("gateway.parked_work_not_taken", reason=str(error), exc_info=not is_transient(error))

    def close_of(self, workers: Collection[UUID]) -> None:
        """Answer the takes of workers that count as lost. Such a worker learns from its next call that its session has ended."""
        for take in list(self.waiting):
            if take.worker.id in workers:
                self._close(take)

    def stop(self) -> None:
        """Answer all takes, and take no more."""
        self._is_stopping = True
        for take in self.waiting:
            take.close()

    def _route(self, queue: str) -> RouteTakes:
        route = self._routes.get(queue)
        if route is None:
            route = self._routes[queue] = RouteTakes(
                queue, self._claims, self._permits, self._publisher, self._pool
            )
            self._start(self._serve(route), f"takes of {queue}")
        return route

    async def _serve(self, route: RouteTakes) -> None:
        try:
            await route.run()
        finally:
            if self._routes.get(route.queue) is route:
                del self._routes[route.queue]

    def _close(self, take: Take) -> None:
        take.close()
        self.waiting.pop(take, None)
        for queue in take.worker.queues:
            if queue in self._routes:
                self._routes[queue].remove(take)

    async def _before(self, take: Take) -> bool:
        """Find what an earlier call of this take was given. Return whether it was given anything."""
        self._permits.add(take, await self._permits.look_up(take))
        return bool(take.attempts)

    async def _given(self, take: Take) -> list[OwnedAttempt]:
        """Return the attempts of a take that may begin. Two gateways may have claimed for calls of the same take: what is
        too much goes back on its route."""
        excess = take.attempts[take.slots :]
        if excess:
            take.attempts = take.attempts[: take.slots]
            await self._held.hand_back(take.worker, excess)
        return await self._held.complete(take.worker, take.attempts)

    async def _replace(self, take: Take) -> None:
        """Close an earlier call of this take. Its caller has gone, or it would not have asked again."""
        earlier = self._latest.get(take.claim)
        if earlier is not None:
            self._close(earlier)
            async with earlier.turn:
                earlier.is_replaced = True
                await self._permits.settle(earlier)

    def _answer(self, take: Take) -> None:
        """Note that a take is over."""
        if self._latest.get(take.claim) is take:
            del self._latest[take.claim]

    async def _return(self, take: Take) -> None:
        """Hand back what was claimed for a take after its caller has gone, unless the worker has sent it again."""
        async with take.turn:
            if not take.is_replaced:
                await self._permits.settle(take)
                self._answer(take)
                if take.attempts and not take.is_shared:
                    await self._held.hand_back(take.worker, take.attempts, of=take)
