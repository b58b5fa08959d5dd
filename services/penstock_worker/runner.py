"""One worker: runs what it has claimed, and hands the endings to the reports."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from uuid import UUID

import structlog

from penstock.errors import ClaimLost, NoCapacity
from penstock.language.after_attempt import NOT_BEGUN, Ending, ending_after, ending_of_unfinished
from penstock.language.moves import CANCELLED, REQUESTED
from penstock.messaging.broadcast import CoalescedBroadcast, due_sooner
from penstock.messaging.relay import offer_again
from penstock.run.run import executor_name
from penstock.run.run_log import RunLog
from penstock.run.task_executors import Outcome, Run, RunnableAction, TaskExecutor, attempt
from penstock.service.assembly import Parts
from penstock.service.explain_errors import explained
from penstock.service.heartbeat import Identity
from penstock.store.queues import WORK
from penstock_worker.action_durations import ActionDurations
from penstock_worker.claims import Claimed, Claims
from penstock_worker.durable.runs import DurableRuns
from penstock_worker.executor_room import ExecutorRoom
from penstock_worker.executors import chosen
from penstock_worker.next_work import NextWork
from penstock_worker.owned_attempt import OwnedAttempt
from penstock_worker.parked_work import ParkedWork
from penstock_worker.references import References
from penstock_worker.reports import Reports
from penstock_worker.route_consumer import RouteConsumer
from penstock_worker.running import Running
from penstock_worker.slots import Slots

log = structlog.get_logger()

ENVELOPE = 20
"""Executions of a full envelope: what a delivery may fill."""
WRITTEN = 5.0
"""Seconds that the endings of what was stopped may take to be written down, beside the grace that it has to stop."""

Sink = Callable[[OwnedAttempt, str, str], None]
"""Takes an attempt, a stream, and a line that it wrote there."""


class Runner:
    """Runs as many attempts at a time as it has slots."""

    def __init__(
        self,
        parts: Parts,
        worker: Identity,
        actions: Callable[[str], RunnableAction | None],
        executors: Mapping[str, TaskExecutor],
        *,
        durations: ActionDurations,
        sink: Sink,
    ) -> None:
        self._parts = parts
        self._settings = parts.settings
        self._times = cache(parts.metrics.run_seconds.labels)  # to find one takes longer than to count
        self._ends = cache(parts.metrics.attempts.labels)
        self._executors = executors
        self._durations = durations
        self._sink = sink
        self.slots = Slots(parts.settings.concurrency)
        self.running: dict[UUID, Running] = {}
        self._queues: set[str] = set()
        self._stopping = asyncio.Event()
        self._session = parts.database.session()
        self._references = References(parts)
        self._room = ExecutorRoom(executors, self.slots.count)
        self._claims = Claims(
            self._session, worker, actions, self.slots, self._room, parts.settings.route_executors
        )
        self._claiming = asyncio.Lock()
        self._durable = DurableRuns(parts, worker, self.slots, self.running)
        self.parked_work = ParkedWork(
            self._queues, self.slots, self._claim_parked, self._stopping, parts.settings.poll_interval
        )
        self._next = NextWork(
            parts.publisher,
            self.slots,
            self._queues,
            self._claims,
            self._claim,
            self._start_offered,
            self._stopping,
        )
        self.reports = Reports(
            parts.database.session(),
            worker.id,
            CoalescedBroadcast(partial(due_sooner, parts.transport, "timers"), "timers"),
            self.slots,
            self._next,
            settled=self._settled,
        )

    # -- what comes in -------------------------------------------------------------------------------------------

    async def consume(self, route: str) -> None:
        """Take work of a route until told to stop."""
        queue = WORK + route
        prefetch = math.ceil(self.slots.count / ENVELOPE)  # enough to fill all slots
        subscription = await self._parts.transport.subscribe(queue, prefetch)
        try:
            await offer_again(self._parts.transport, self._session, queue, self._parts.process)
            self._queues.add(queue)
            await RouteConsumer(subscription, prefetch, self.slots, self._claim, self._stopping).run()
        finally:
            self._queues.discard(queue)
            await subscription.close()

    async def _claim(self, queue: str, ids: Sequence[UUID]) -> None:
        """Start as many of these as there are free slots; the rest goes back on its route."""
        async with self._claiming:  # two routes must not fill the same slots
            async for claimed in self._claims.claim(queue, ids):
                self._start_offered(queue, claimed)

    async def _claim_parked(self, queue: str) -> bool:
        """Start as much as there is room for of what is parked on this queue; says whether some was for this worker."""
        waits = False
        async with self._claiming:
            async for claimed in self._claims.claim_parked(queue):
                self._start_all(queue, claimed)
                waits = claimed.parked
        return waits

    def _start_offered(self, queue: str, claimed: Claimed) -> None:
        self._start_all(queue, claimed)
        if claimed.parked:
            self.parked_work.parked(queue)  # room may have come since it was asked for
            self._parts.publisher.parked(queue)

    def _start_all(self, queue: str, claimed: Claimed) -> None:
        for claim, size in Counter(one.claim for one in claimed.attempts).items():
            self.reports.claims.open(claim, size)
        waits = self._parts.metrics.start_seconds.labels(queue.removeprefix(WORK))
        for one in claimed.attempts:
            waits.observe(one.waited)
            self._start(one)
        self._parts.publisher.publish(claimed.staged)

    # -- an attempt ----------------------------------------------------------------------------------------------

    def _start(self, owned: OwnedAttempt) -> None:
        id, executor = owned.event.execution_id, executor_name(owned.version.action, owned.of_route)
        self.slots.take(id, owned.event.attempt)
        self._room.give(executor)
        task = asyncio.create_task(self._run(owned))
        self.running[id] = Running(owned, task)
        task.add_done_callback(lambda _: self._ended(owned, executor))

    def _ended(self, owned: OwnedAttempt, executor: str) -> None:
        """A task that is cancelled before its first step never comes to one, and so ends without having said so."""
        running = self.running.get(owned.event.execution_id)
        if running is not None and running.attempt is owned:
            self._stopped(owned)
        self._room.take_back(executor)
        self.parked_work.has_room()

    def _settled(self, owned: OwnedAttempt) -> None:
        """An attempt is written down, or lost."""
        self.slots.give_back(owned.event.execution_id)
        self.parked_work.has_room()

    async def _run(self, owned: OwnedAttempt) -> None:
        event, version = owned.event, owned.version
        if owned.refers and not await self._complete(owned):
            return
        self.running[event.execution_id].begun = True
        run = Run(
            event=event,
            params=owned.params,
            action=version.action,
            log=RunLog(
                lambda stream, line: self._sink(owned, stream, self._references.conceal_line(owned, line))
            ),
            timeout=version.timeout,
            grace=self._settings.grace,
            carry=owned.carry,
            context=owned.context,
            result_limit=self._references.limit,
            durable=self._durable.of(owned),
            trace=owned.traced.carrier if owned.traced is not None else {},
        )
        began = time.monotonic()
        try:
            with owned.traced.begin() if owned.traced is not None else contextlib.nullcontext():
                outcome = await attempt(chosen(self._executors, version.action, owned.of_route), run)
                outcome = await self._references.put_away(owned, outcome)
        except asyncio.CancelledError:
            self._stopped(owned)
            return
        except ClaimLost:  # a durable function was told by the database, when it recorded something
            self.running.pop(event.execution_id, None)
            self.reports.discard(owned, known_to_be_lost=True)
            return
        except NoCapacity as full:  # it said before the claim that it had room
            self.running.pop(event.execution_id, None)
            self._report(owned, Ending(REQUESTED, delay=1.0, reason=full.message))
            return
        took = time.monotonic() - began
        self._durations.took(event.namespace, took)
        self._times(event.action).observe(took)
        self._finished(owned, outcome)

    def _finished(self, owned: OwnedAttempt, outcome: Outcome) -> None:
        """It ended by itself."""
        running = self.running.pop(owned.event.execution_id, None)
        if running is not None and running.lost:
            self.reports.discard(owned, known_to_be_lost=running.known_to_be_lost)
        else:
            version = owned.version
            self._report(owned, ending_after(outcome, version.recovery, version.retry, owned.failures))

    async def _complete(self, owned: OwnedAttempt) -> bool:
        """Give it what its parameters refer to; or, where that cannot be, end it."""
        try:
            await self._references.follow(owned)
            return True
        except asyncio.CancelledError:
            self._stopped(owned)
        except Exception as error:
            self._finished(owned, self._references.concealed(owned, Outcome.failed(explained(error))))
        return False

    def _stopped(self, owned: OwnedAttempt) -> None:
        """It did not end by itself: this worker has stopped it."""
        running = self.running.pop(owned.event.execution_id)
        if running.lost:
            self.reports.discard(owned, known_to_be_lost=running.known_to_be_lost)
        elif running.cancelled:
            self._report(owned, Ending(CANCELLED))
        elif running.begun:  # draining, or given up
            self._report(owned, ending_of_unfinished(owned.version.recovery, running.given_up))
        else:
            self._report(owned, NOT_BEGUN)

    def _report(self, owned: OwnedAttempt, ending: Ending) -> None:
        self._ends(owned.event.action, ending.status).inc()
        self.reports.add(owned, ending)

    # -- what others say about attempts --------------------------------------------------------------------------

    def cancel(self, ids: Sequence[UUID]) -> None:
        """Somebody asked to cancel these: end those that run here."""
        for id in ids:
            running = self.running.get(id)
            if running is not None and not running.cancelled:
                running.cancelled = True
                running.task.cancel()

    def lose(self, ids: Sequence[UUID], *, known: bool) -> None:
        """The claims of these are lost, or may be: end them, and report nothing. `known`: the database said so."""
        for id in ids:
            running = self.running.get(id)
            if running is not None and not running.lost:
                running.lost, running.known_to_be_lost = True, known
                running.task.cancel()
                log.warning("worker.claim_lost", execution_id=str(id), attempt=running.attempt.event.attempt)

    def give_up(self, why: str) -> None:
        """End everything, and hand it back as soon as the database is there: who has taken it meanwhile keeps it."""
        for running in self.running.values():
            if running.given_up is None:
                running.given_up = why
                running.task.cancel()

    # -- the end -------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Take nothing more. `consume` returns once what it was just claiming is started."""
        self._stopping.set()
        self.parked_work.stop()

    async def drain(self, grace: float, at_once: asyncio.Event) -> None:
        """Let what runs finish within `grace` seconds, give up the rest: what must run at most once fails, if it has begun, and
        all else is handed back."""
        waits = [asyncio.ensure_future(self._nothing_left()), asyncio.ensure_future(at_once.wait())]
        await asyncio.wait(waits, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        self._next.give_up()
        for running in list(self.running.values()):
            running.task.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.grace + WRITTEN):
                await self.slots.all_free()
                await self.reports.drained()

    async def _nothing_left(self) -> None:
        await self._next.claimed()
        await self.slots.all_free()
