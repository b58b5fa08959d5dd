"""One worker: runs what it has claimed, and hands the endings to the reports."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog

from penstock.errors import NoCapacity
from penstock.language.after_attempt import NOT_BEGUN, Ending, ending_of, ending_of_unfinished
from penstock.messaging.broadcast import TimerBroadcast
from penstock.moves import CANCELLED, REQUESTED
from penstock.run.run_log import RunLog
from penstock.run.task_executors import Run, RunnableAction, TaskExecutor, attempt
from penstock.service.assembly import Parts
from penstock.service.heartbeat import Identity
from penstock.store import outbox
from penstock.store.queues import WORK
from penstock_worker.action_durations import ActionDurations
from penstock_worker.claims import Claims, OwnedAttempt
from penstock_worker.executors import chosen
from penstock_worker.next_work import NextWork
from penstock_worker.reports import Reports
from penstock_worker.route_consumer import RouteConsumer
from penstock_worker.secret_masking import concealed, concealed_outcome
from penstock_worker.slots import Slots

log = structlog.get_logger()

ENVELOPE = 20
"""Executions of a full envelope: what a delivery may fill."""
WRITTEN = 5.0
"""Seconds that the endings of what was stopped may take to be written down, beside the grace that it has to stop."""

Sink = Callable[[OwnedAttempt, str, str], None]
"""Takes an attempt, a stream, and a line that it wrote there."""


@dataclass(slots=True)
class Running:
    """An attempt that runs. `begun`: its task executor has it, so that it may have had effects. `cancelled`: somebody asked for
    its end. `lost`: its claim is lost, or may be; and `known_to_be_lost`: that was read in the database. `given_up`: why this
    worker ends it itself, if not because it stops."""

    attempt: OwnedAttempt
    task: asyncio.Task[None]
    begun: bool = False
    cancelled: bool = False
    lost: bool = False
    known_to_be_lost: bool = False
    given_up: str | None = None


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
        self._metrics = parts.metrics
        self._executors = executors
        self._durations = durations
        self._sink = sink
        self.slots = Slots(parts.settings.concurrency)
        self.running: dict[UUID, Running] = {}
        self._queues: set[str] = set()
        self._stopping = asyncio.Event()
        self._session = parts.database.session()
        self._claims = Claims(self._session, worker, actions)
        self._claiming = asyncio.Lock()
        self._next = NextWork(parts.publisher, self.slots, self._queues, self._claim, self._stopping)
        self.reports = Reports(
            parts.database.session(),
            worker.id,
            TimerBroadcast(parts.transport),
            settled=lambda attempt: self.slots.give_back(attempt.event.execution_id),
            staged=self._next.pass_on,
        )

    # -- what comes in -------------------------------------------------------------------------------------------

    async def consume(self, route: str) -> None:
        """Take work of a route until told to stop."""
        queue = WORK + route
        prefetch = max(1, self.slots.count // ENVELOPE)
        subscription = await self._parts.transport.subscribe(queue, prefetch)
        try:
            await outbox.offer_again(self._session, queue)
            self._queues.add(queue)
            await RouteConsumer(subscription, prefetch, self.slots, self._claim, self._stopping).run()
        finally:
            self._queues.discard(queue)
            await subscription.close()

    async def _claim(self, queue: str, ids: Sequence[UUID]) -> None:
        """Start as many of these as there are free slots; the rest goes back on its route."""
        async with self._claiming:  # two routes must not fill the same slots
            claimed, staged = await self._claims.claim(queue, ids, self.slots.free)
            sizes: dict[UUID, int] = {}
            for one in claimed:
                sizes[one.claim] = sizes.get(one.claim, 0) + 1
            for claim, size in sizes.items():
                self.reports.claims.open(claim, size)
            waits = self._metrics.start_seconds.labels(queue.removeprefix(WORK))
            for one in claimed:
                waits.observe(one.waited)
                self._start(one)
        self._parts.publisher.publish(staged)

    # -- an attempt ----------------------------------------------------------------------------------------------

    def _start(self, owned: OwnedAttempt) -> None:
        id = owned.event.execution_id
        self.slots.take(id, owned.event.attempt)
        task = asyncio.create_task(self._run(owned))
        self.running[id] = Running(owned, task)
        task.add_done_callback(lambda _: self._ended(owned))

    def _ended(self, owned: OwnedAttempt) -> None:
        """A task that is cancelled before its first step never comes to one, and so ends without having said so."""
        running = self.running.get(owned.event.execution_id)
        if running is not None and running.attempt is owned:
            self._stopped(owned)

    async def _run(self, owned: OwnedAttempt) -> None:
        event, version = owned.event, owned.version
        self.running[event.execution_id].begun = True
        run = Run(
            event=event,
            params=owned.params,
            action=version.action,
            log=RunLog(lambda stream, line: self._sink(owned, stream, concealed(line, owned.secrets))),
            timeout=version.timeout,
            grace=self._settings.grace,
            carry=owned.carry,
            context=owned.context,
            result_limit=self._settings.payload_cap,
        )
        began = time.monotonic()
        try:
            outcome = await attempt(chosen(self._executors, version.action), run)
        except asyncio.CancelledError:
            self._stopped(owned)
            return
        except (
            NoCapacity
        ):  # threads of it that cannot be ended, say: another worker, or this one later, may have room
            self.running.pop(event.execution_id, None)
            self._report(owned, Ending(REQUESTED, delay=1.0, reason="its task executor was full"))
            return
        took = time.monotonic() - began
        self._durations.took(event.namespace, took)
        self._metrics.run_seconds.labels(event.action).observe(took)
        running = self.running.pop(event.execution_id, None)
        if running is not None and running.lost:
            self.reports.discard(owned, known_to_be_lost=running.known_to_be_lost)
        else:
            outcome = concealed_outcome(outcome, owned.secrets)
            self._report(owned, ending_of(outcome, version.retry, owned.failures))

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
        self._metrics.attempts.labels(owned.event.action, ending.status).inc()
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
                log.warning("worker.claim_lost", execution=str(id), attempt=running.attempt.event.attempt)

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
