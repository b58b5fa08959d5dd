"""One worker: takes work from its routes while it has free slots, runs it, and hands the endings to the reports."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog

from penstock.errors import NoCapacity, Undecodable
from penstock.messaging import messages
from penstock.messaging.broadcast import Teller
from penstock.messaging.transports import Delivery, Subscription
from penstock.moves import CANCELLED, REQUESTED
from penstock.run.run_log import RunLog
from penstock.run.task_executors import Run, RunnableAction, TaskExecutor, attempt
from penstock.service.assembly import Parts
from penstock.service.heartbeat import Identity, Pulse
from penstock.store import queues
from penstock.store.database import StagedMessage
from penstock_worker.action_durations import ActionDurations
from penstock_worker.after_attempt import Ending, decide
from penstock_worker.claims import Claimed, Claims
from penstock_worker.executors import chosen
from penstock_worker.report import Reports
from penstock_worker.secret_masking import concealed, concealed_outcome

log = structlog.get_logger()

ENVELOPE = 20
BUSY = 0.1
"""Seconds that a worker without a free slot keeps what it was delivered, before it hands it to others."""

Sink = Callable[[Claimed, str, str], None]


@dataclass(slots=True)
class Running:
    claimed: Claimed
    task: asyncio.Task[None]
    cancelled: bool = False
    lost: bool = False
    told: bool = False
    """That it is lost was read in the database, not only feared."""


class Runner:
    """`slots` executions at a time. What is held in excess of them goes back at once."""

    def __init__(
        self,
        parts: Parts,
        worker: Identity,
        actions: Callable[[str], RunnableAction | None],
        executors: Mapping[str, TaskExecutor],
        *,
        durations: ActionDurations,
        sink: Sink | None = None,
    ) -> None:
        self._parts = parts
        self._settings = parts.settings
        self._executors = executors
        self._durations = durations
        self._sink = sink
        self._claims = Claims(parts.database.session(), worker, actions)
        self._reports = Reports(
            parts.database.session(), worker.id, Teller(parts.transport), self._settled, self._pass_on
        )
        self.slots = parts.settings.concurrency
        self.running: dict[UUID, Running] = {}
        self._held: dict[UUID, int] = {}
        self._free = asyncio.Event()
        self._free.set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._claiming = asyncio.Lock()
        self._queues: set[str] = set()
        self._taking: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._cordoned = False
        self._metrics = parts.metrics

    @property
    def free(self) -> int:
        return 0 if self._cordoned else max(0, self.slots - len(self._held))

    @property
    def lost(self) -> int:
        return self._reports.lost

    def holding(self) -> Mapping[UUID, int]:
        """What this worker holds, for the heartbeat's thread: a copy, made in one step."""
        return self._held.copy()

    async def reports(self) -> None:
        await self._reports.run()

    async def consume(self, route: str) -> None:
        """Take work of a route until told to stop."""
        queue = queues.WORK + route
        prefetch = max(1, self.slots // ENVELOPE)
        subscription = await self._parts.transport.subscribe(queue, prefetch)
        await self._claims.called(queue)
        self._queues.add(queue)
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            while not self._stopping.is_set():
                if not await self._wait_for_slot(subscription, prefetch):
                    continue
                deliveries = await _receive(subscription, prefetch, stop)
                if deliveries:
                    await self._take(queue, subscription, deliveries)
        finally:
            self._queues.discard(queue)
            stop.cancel()
            await subscription.close()

    async def _wait_for_slot(self, subscription: Subscription, prefetch: int) -> bool:
        """True with a free slot. Without one for a moment the consumer stops, and what it holds goes back: nothing
        waits here while another worker of the route has a free slot."""
        if self.free:
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BUSY):
                await self._free.wait()
        if self.free:
            return True
        await subscription.resize(0)
        while not self.free and not self._stopping.is_set():
            await self._hand_back(subscription)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._free.wait()
        await subscription.resize(prefetch)
        return False

    async def _hand_back(self, subscription: Subscription) -> None:
        """What was delivered before the consumer stopped goes back on its route."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.02):
                while True:
                    deliveries = await subscription.receive(100)
                    await asyncio.shield(self._take(subscription.queue, subscription, deliveries))

    async def _take(self, queue: str, subscription: Subscription, deliveries: Sequence[Delivery]) -> None:
        ids: dict[UUID, None] = {}
        good: list[Delivery] = []
        for delivery in deliveries:
            try:
                ids |= dict.fromkeys(messages.decode(delivery.body).ids)
                good.append(delivery)
            except Undecodable as error:
                await subscription.dead_letter([delivery], f"Undecodable: {error.message}")
        if not good:
            return
        await self._claim(queue, list(ids))
        await asyncio.sleep(0)  # the work begins before the ack is written
        await subscription.ack(good)

    async def _claim(self, queue: str, ids: Sequence[UUID]) -> None:
        """Start those that are ours; what there is no slot for goes back on its route."""
        async with self._claiming:  # two routes must not fill the same slots
            claimed, staged = await self._claims.claim(queue, ids, self.free)
            sizes: dict[UUID, int] = {}
            for one in claimed:
                sizes[one.claim] = sizes.get(one.claim, 0) + 1
            for claim, size in sizes.items():
                self._reports.opened(claim, size)
            waits = self._metrics.start_seconds.labels(queue.removeprefix(queues.WORK))
            for one in claimed:
                waits.observe(one.waited)
                self._start(one)
        self._parts.publisher.publish(staged)

    def _pass_on(self, staged: list[StagedMessage], ended: int) -> None:
        """Publish what so many endings brought about. Work on a route of ours that they let in is taken here, as far as there
        are free slots: it need not go round by the broker. Not where all slots were taken: then other work may wait on the
        route, and comes first."""
        room = self.free if self.free > ended and not self._stopping.is_set() else 0
        here: dict[str, list[StagedMessage]] = {}
        others = []
        for one in staged:
            if one.queue in self._queues and len(one.ids) <= room:
                room -= len(one.ids)
                here.setdefault(one.queue, []).append(one)
            else:
                others.append(one)
        self._parts.publisher.publish(others)
        for queue, staged in here.items():
            task = asyncio.create_task(self._take_here(queue, staged), name=f"take {queue}")
            self._taking.add(task)
            task.add_done_callback(self._taking.discard)

    async def _take_here(self, queue: str, staged: Sequence[StagedMessage]) -> None:
        try:
            await self._claim(queue, [id for one in staged for id in one.ids])
        except Exception:
            log.exception("worker.not_taken")
            self._parts.publisher.publish(staged)
            return
        self._parts.publisher.settle(staged)

    def _start(self, claimed: Claimed) -> None:
        id = claimed.event.execution_id
        self._held[id] = claimed.event.attempt
        if len(self._held) >= self.slots:
            self._free.clear()
        self._idle.clear()
        self.running[id] = Running(claimed, asyncio.create_task(self._run(claimed)))

    async def _run(self, claimed: Claimed) -> None:
        event, plan = claimed.event, claimed.plan
        run = Run(
            event=event,
            params=claimed.params,
            action=plan.action,
            log=RunLog(lambda stream, line: self._log(claimed, stream, line)),
            timeout=plan.timeout,
            grace=self._settings.grace,
            carry=claimed.carry,
            context=claimed.context,
            result_limit=self._settings.payload_cap,
        )
        began = time.monotonic()
        try:
            outcome = await attempt(chosen(self._executors, plan.action), run)
        except asyncio.CancelledError:
            self._cancelled(claimed)
            return
        except NoCapacity:  # leaked threads, say: another worker, or this one later, may have it
            self.running.pop(event.execution_id, None)
            self._report(claimed, Ending(REQUESTED, delay=1.0, reason="its task executor was full"))
            return
        took = time.monotonic() - began
        self._durations.took(event.namespace, took)
        self._metrics.run_seconds.labels(event.action).observe(took)
        mine = self.running.pop(event.execution_id, None)
        if mine is not None and mine.lost:
            self._reports.drop(claimed, told=mine.told)
        else:
            outcome = concealed_outcome(outcome, claimed.hidden)
            self._report(claimed, decide(outcome, plan.retry, claimed.failures))

    def _cancelled(self, claimed: Claimed) -> None:
        mine = self.running.pop(claimed.event.execution_id)
        if mine.lost:
            self._reports.drop(claimed, told=mine.told)
        elif mine.cancelled:
            self._report(claimed, Ending(CANCELLED))
        else:  # draining: hand it back, at no cost to its attempts that failed
            self._report(claimed, Ending(REQUESTED, reason="handed back by a draining worker"))

    def _report(self, claimed: Claimed, ending: Ending) -> None:
        self._metrics.attempts.labels(claimed.event.action, ending.status).inc()
        self._reports.add(claimed, ending)

    def _settled(self, claimed: Claimed) -> None:
        self._held.pop(claimed.event.execution_id, None)
        if self.free:
            self._free.set()
        if not self._held:
            self._idle.set()

    def _log(self, claimed: Claimed, stream: str, line: str) -> None:
        if self._sink is not None:
            self._sink(claimed, stream, concealed(line, claimed.hidden))

    def cancel(self, ids: Sequence[UUID]) -> None:
        """Somebody asked to cancel these: end those that run here."""
        for id in ids:
            running = self.running.get(id)
            if running is not None and not running.cancelled:
                running.cancelled = True
                running.task.cancel()

    def lose(self, ids: Sequence[UUID], *, told: bool) -> None:
        """These are not ours any more (ClaimLost), or may not be: end them, and discard what they report."""
        for id in ids:
            running = self.running.get(id)
            if running is not None and not running.lost:
                running.lost, running.told = True, told
                running.task.cancel()
                log.warning("worker.claim_lost", execution=str(id), attempt=running.claimed.event.attempt)

    def pulse(self, pulse: Pulse) -> None:
        """What a heartbeat was answered."""
        if not pulse.known:
            # What was claimed since is still ours in the database's eyes.
            self.lose(list(self.running), told=False)
            return
        self.lose(pulse.lost, told=True)
        self.cancel(pulse.canceling)
        if pulse.cordoned != self._cordoned:
            self.cordon(pulse.cordoned)

    def silent(self) -> None:
        """No heartbeat got through for so long that others take over: end everything of ours first."""
        self.lose(list(self.running), told=False)

    def cordon(self, cordoned: bool) -> None:
        """Take no new work, or take it again."""
        self._cordoned = cordoned
        if self.free:
            self._free.set()
        else:
            self._free.clear()

    def stop(self) -> None:
        """Take nothing more. `consume` returns once what it was just claiming is started."""
        self._stopping.set()

    async def drain(self, grace: float, at_once: asyncio.Event) -> None:
        """Let what runs finish within `grace` seconds, hand back the rest."""
        waits = [asyncio.ensure_future(self._nothing_left()), asyncio.ensure_future(at_once.wait())]
        await asyncio.wait(waits, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        for taking in self._taking:
            taking.cancel()  # the database is away: what it would take stays in the outbox, for a relay
        for running in list(self.running.values()):
            running.task.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.grace):
                await self._idle.wait()
                await self._reports.drained()

    async def _nothing_left(self) -> None:
        while self._taking:
            await asyncio.wait(self._taking)
        await self._idle.wait()


async def _receive(subscription: Subscription, limit: int, stop: asyncio.Future[Any]) -> Sequence[Delivery]:
    """What arrives; nothing when it is time to stop."""
    receive = asyncio.ensure_future(subscription.receive(limit))
    await asyncio.wait({receive, stop}, return_when=asyncio.FIRST_COMPLETED)
    if receive.done():
        return receive.result()
    receive.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        return await receive
    return ()
