"""The takes of a gateway's workers, from the calls to their answers."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any
from uuid import UUID

import structlog

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.messaging.outbox import Publisher
from penstock.store.executions import remote_attempts
from penstock.store.session.database import is_transient
from penstock_api.session_pool import SessionPool
from penstock_api.work.definitions import Definitions
from penstock_api.work.held_attempts import HeldAttempts
from penstock_api.work.remote_worker import RemoteWorker
from penstock_api.work.route_takes import RouteTakes
from penstock_api.work.take import Take, claim_of
from penstock_api.work.take_claims import TakeClaims
from penstock_api.work.take_permits import TakePermits

log = structlog.get_logger()

TOGETHER_S = 1.0
"""Seconds between the ends of long waits."""
LONG_S = 30.0
"""The minimum seconds of a wait that counts as long."""


def end_of_wait(now: float, seconds: float) -> float:
    """Return the instant at which a wait ends. Long waits end a little early, at a multiple of TOGETHER_S. It costs
    less to wake once for the takes of many idle workers than once for each take."""
    until = now + seconds
    return until if seconds < LONG_S else until // TOGETHER_S * TOGETHER_S


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
        """`start` starts a named task besides the calls."""
        self._pool = pool
        self._permits = permits
        self._publisher = publisher
        self._held = held
        self._claims = TakeClaims(pool, publisher, definitions, held)
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
        """Wait at most `seconds`, or until `until` is done, for at most `slots` attempts of the worker. `again`: the
        worker has sent this take before, and may have been answered. If the caller is cancelled, work that was claimed
        for it goes back to its route."""
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
            async with take.turn:  # a claim for the take may be under way
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
            route.note_parked()
            self.look.set()

    async def look_for_parked(self, every: float) -> None:
        """Offer parked work to takes when some process has parked work. Also do so at intervals, as broadcasts may be
        missed."""
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
                            route.note_parked()
                for route in routes:
                    if route.parked:
                        await route.take_parked()
            except Exception as error:
                log.warning(
                    "gateway.parked_work_not_taken", reason=str(error), exc_info=not is_transient(error)
                )

    async def _look_for(self, take: Take, routes: Sequence[RouteTakes]) -> None:
        """Offer the parked work of these routes to a take. Its worker is new, or had no take when the work was parked,
        and the workers that were offered it may lack the action."""
        parkings = {route.queue: route.parking for route in routes}
        try:
            async with self._pool.session() as session:
                queues = await remote_attempts.parked_queues(session, list(parkings))
            for route in routes:
                if route.queue in queues:
                    await route.give_parked(take)
                else:
                    take.worker.parkings[route.queue] = parkings[route.queue]
        except Exception as error:  # the loop look_for_parked tries again
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
        """Look up the attempts that an earlier call of this take was given. Return whether there are any."""
        self._permits.add(take, await self._permits.look_up(take))
        return bool(take.attempts)

    async def _given(self, take: Take) -> list[OwnedAttempt]:
        """Return the attempts of a take that may begin. Two gateways may have claimed for calls of the same take:
        attempts beyond its slots go back to their route."""
        excess = take.attempts[take.slots :]
        if excess:
            take.attempts = take.attempts[: take.slots]
            await self._held.hand_back(take.worker, excess)
        return await self._held.complete(take.worker, take.attempts)

    async def _replace(self, take: Take) -> None:
        """Close an earlier call of this take. Its caller has left: otherwise the worker would not have sent the take
        again."""
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
        """Hand back the work that was claimed for a take with a caller that has left, unless the worker has sent the
        take again."""
        async with take.turn:
            if not take.is_replaced:
                await self._permits.settle(take)
                self._answer(take)
                if take.attempts and not take.is_shared:
                    await self._held.hand_back(take.worker, take.attempts, of=take)
