"""The runner of a worker, which runs claimed attempts, and passes their endings to the reports."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache, partial
from uuid import UUID

import structlog

from penstock.attempts import secret_values
from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.attempts.references import References
from penstock.errors import ClaimLost, NoCapacity
from penstock.language.moves import CANCELLED, REQUESTED
from penstock.language.policies.after_attempt import NOT_BEGUN, Ending, ending_after, ending_of_unfinished
from penstock.messaging.broadcast import CoalescedBroadcast, due_sooner
from penstock.messaging.relay import offer_again
from penstock.run.run import executor_name
from penstock.run.run_log import RunLog
from penstock.run.task_executors import Outcome, Run, RunnableAction, TaskExecutor, attempt
from penstock.service.assembly import Parts
from penstock.service.explain_errors import explained
from penstock.service.heartbeat import Identity
from penstock.store.executions.result_watch import ResultWatch
from penstock.store.outbox.queues import WORK
from penstock_worker.attempts.attempt_tokens import AttemptTokens
from penstock_worker.claiming.assignments import FRESH_S, Assignments
from penstock_worker.claiming.claiming import Claiming
from penstock_worker.claiming.claims import Claims
from penstock_worker.claiming.open_claims import OpenClaims
from penstock_worker.claiming.parked_queues import ParkedQueues
from penstock_worker.claiming.parked_work import ParkedWork
from penstock_worker.claiming.permits import RENEWAL_S, Permits
from penstock_worker.claiming.route_consumer import RouteConsumer
from penstock_worker.durable.runs import DurableRuns
from penstock_worker.ending.next_work import NextWork
from penstock_worker.ending.reports import Reports
from penstock_worker.ending.slow_actions import ActionDurations
from penstock_worker.executors import chosen
from penstock_worker.outgoing.attempt_requests import AttemptRequests
from penstock_worker.outgoing.writer import EffectWriter
from penstock_worker.records.executor_room import ExecutorRoom
from penstock_worker.records.running import Running
from penstock_worker.records.slots import Slots

log = structlog.get_logger()

ENVELOPE = 20
"""The number of executions in a full envelope, and so in one delivery."""
NO_COSTS: Mapping[str, Decimal] = {}
WRITTEN = 5.0
"""The seconds for writing the endings of stopped attempts, in addition to their grace."""

Sink = Callable[[OwnedAttempt, str, str], None]
"""A function that takes an attempt, a stream, and a line that the attempt wrote to the stream."""


class Runner:
    """The runner of a worker. It runs at most as many attempts at a time as it has slots."""

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
        # cached, as looking up a label takes longer than counting
        self._times = cache(parts.metrics.run_seconds.labels)
        self._ends = cache(parts.metrics.attempts.labels)
        self._executors = executors
        self._durations = durations
        self._sink = sink
        self.slots = Slots(parts.settings.concurrency)
        self.running: dict[UUID, Running] = {}
        self._queues: set[str] = set()
        self._stopping = asyncio.Event()
        self._session = parts.database.session()
        self._references = References(parts.database)
        self._tokens = AttemptTokens(parts)
        self._room = ExecutorRoom(executors, self.slots.count)
        self.parked = ParkedQueues(self._queues)
        claims = Claims(
            self._session, worker, actions, self.slots, self._room, self._settings.route_executors
        )
        open_claims = OpenClaims()
        self.permits = Permits(
            parts.database.session(relaxed=True),
            worker.id,
            self.slots,
            claims.assignable,
            behind=parts.transport.outbox_is_queue,
            every=min(RENEWAL_S, self._settings.stale_threshold / 3),
        )
        self.claiming = Claiming(
            claims,
            open_claims,
            self.slots,
            self._room,
            self.parked,
            self.permits,
            parts.publisher,
            parts.metrics,
        )
        self.assignments = Assignments(
            parts.database.session(),
            worker.id,
            self.claiming,
            self.permits,
            self.slots,
            self._report,
            fresh=min(FRESH_S, self._settings.stale_threshold),
        )
        self._inbox = self.claiming.inbox
        self._watch = ResultWatch(parts.database)
        self._durable = DurableRuns(parts, worker, self.slots, self.running, self._watch)
        self._effects = EffectWriter(
            parts.database.session(), parts.database.session(), worker.id, parts.publisher
        )
        self.parked_work = ParkedWork(
            self.parked, self.slots, self.claiming, self._stopping, self._settings.poll_interval
        )
        self._next = NextWork(parts.publisher, self.slots, self._queues, self.claiming, self._stopping)
        self.reports = Reports(
            parts.database.session(),
            worker.id,
            CoalescedBroadcast(partial(due_sooner, parts.transport, "timers"), "timers"),
            self.slots,
            self._next,
            open_claims,
            self.parked,
            self._effects,
        )

    # -- arriving work -------------------------------------------------------------------------------------------

    async def consume(self, route: str) -> None:
        """Claim and start work of a route until the worker is asked to stop."""
        queue = WORK + route
        prefetch = math.ceil(self.slots.count / ENVELOPE)  # enough to fill all slots
        subscription = await self._parts.transport.subscribe(queue, prefetch)
        try:
            await offer_again(self._parts.transport, self._session, queue, self._parts.process)
            self._queues.add(queue)
            await RouteConsumer(subscription, prefetch, self.slots, self.claiming, self._stopping).run()
        finally:
            self._queues.discard(queue)
            self.permits.is_full(queue)
            await subscription.close()

    async def keep_permits(self, refs: Sequence[str]) -> None:
        """Have submits assign work to this worker until told to stop. `refs`: actions that it has the code for."""
        await self.claiming.claims.look_up_current(refs)
        await self.permits.run(self.assignments.look_soon)

    def listens(self) -> None:
        """Note that the database can notify this worker. What it was notified of before may be lost."""
        self.permits.listens()
        self.assignments.look_soon(0.0)

    async def run(self) -> None:
        """Start the attempts that arrive in the inbox."""
        while True:
            await self._inbox.wait()
            self._begin_arrived()

    def _begin_arrived(self) -> None:
        for owned in self._inbox.take_all():
            self._start(owned)

    # -- an attempt ----------------------------------------------------------------------------------------------

    def _start(self, owned: OwnedAttempt) -> None:
        id, executor = owned.event.execution_id, executor_name(owned.version.action, owned.of_route)
        task = asyncio.create_task(self._run(owned))
        self.running[id] = Running(owned, task)
        task.add_done_callback(lambda _: self._ended(owned, executor))

    def _ended(self, owned: OwnedAttempt, executor: str) -> None:
        """Clean up after the asyncio task of an attempt. A task that is cancelled before its first step runs no code, so it is
        reported here."""
        running = self.running.get(owned.event.execution_id)
        if running is not None and running.attempt is owned:
            self._stopped(owned)
        self._room.take_back(executor)
        self.parked.has_room()

    async def _run(self, owned: OwnedAttempt) -> None:
        event, version = owned.event, owned.version
        if self._is_incomplete(owned) and not await self._complete(owned):
            return
        requests = AttemptRequests(owned, self._effects, self._watch)
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
            outgoing=requests.outgoing(),
            secrets=owned.named_secrets,
            api_address=self._settings.api_address,
            token=owned.token,
        )
        running = self.running[event.execution_id]
        running.is_executing, running.costs = True, run.costs
        began = time.monotonic()
        try:
            with owned.traced.begin() if owned.traced is not None else contextlib.nullcontext():
                outcome = await attempt(chosen(self._executors, version.action, owned.of_route), run)
                if outcome.costs:
                    run.costs.update(outcome.costs)
                outcome = await self._references.put_away(owned, outcome)
        except asyncio.CancelledError:
            self._stopped(owned)
            return
        except ClaimLost:  # a durable function learned it from the database when it recorded a step
            self.running.pop(event.execution_id, None)
            self.reports.discard(owned, known_to_be_lost=True)
            return
        except NoCapacity as full:  # it had reported room before the claim
            self.running.pop(event.execution_id, None)
            self._report(owned, Ending(REQUESTED, delay=1.0, reason=full.message))
            return
        finally:
            requests.close()
        seconds = time.monotonic() - began
        self._durations.took(event.namespace, seconds)
        self._times(event.action).observe(seconds)
        self._finished(owned, outcome)

    def _finished(self, owned: OwnedAttempt, outcome: Outcome) -> None:
        """Report the outcome of an attempt that ended by itself."""
        running = self.running.pop(owned.event.execution_id, None)
        if running is not None and running.claim_lost:
            self.reports.discard(owned, known_to_be_lost=running.known_to_be_lost)
        else:
            version = owned.version
            if "resume" in (
                outcome.inquiry or ()
            ):  # the action runs again from its start, and requests them again
                owned.effects.clear()
            ending = ending_after(outcome, version.recovery, version.retry, owned.failures)
            self._report(owned, ending, running.costs if running is not None else {})

    def _is_incomplete(self, owned: OwnedAttempt) -> bool:
        return owned.refers or secret_values.are_named(owned) or self._tokens.is_needed(owned)

    async def _complete(self, owned: OwnedAttempt) -> bool:
        """Resolve the references in the attempt's parameters, and add its token. If that fails, end the attempt and
        return False."""
        try:
            if owned.refers:
                await self._references.follow(owned, self._parts.process)
            if secret_values.are_named(owned):
                await self._references.reveal_named(owned, self._parts.process)
            if self._tokens.is_needed(owned):
                await self._tokens.add(owned)
            return True
        except asyncio.CancelledError:
            self._stopped(owned)
        except Exception as error:
            self._finished(owned, self._references.concealed(owned, Outcome.failed(explained(error))))
        return False

    def _stopped(self, owned: OwnedAttempt) -> None:
        """Report an attempt that this worker stopped."""
        running = self.running.pop(owned.event.execution_id)
        if running.claim_lost:
            self.reports.discard(owned, known_to_be_lost=running.known_to_be_lost)
        elif running.cancelled:
            self._report(owned, Ending(CANCELLED), running.costs)
        elif running.is_executing:  # the worker drains, or gives the attempt up
            self._report(owned, ending_of_unfinished(owned.version.recovery, running.given_up), running.costs)
        else:
            self._report(owned, NOT_BEGUN)

    def _report(self, owned: OwnedAttempt, ending: Ending, costs: Mapping[str, Decimal] = NO_COSTS) -> None:
        if costs:
            ending = replace(ending, costs=dict(costs))
        self._ends(owned.event.action, ending.status).inc()
        self.reports.add(owned, ending)

    # -- requests to end attempts --------------------------------------------------------------------------------

    def cancel(self, ids: Sequence[UUID]) -> None:
        """End the cancelled executions among `ids` that run here."""
        self._begin_arrived()
        for id in ids:
            running = self.running.get(id)
            if running is not None and not running.cancelled:
                running.cancelled = True
                running.task.cancel()

    def lose(self, ids: Sequence[UUID], *, confirmed: bool) -> None:
        """End attempts with claims that are lost, or may be, without a report. `confirmed`: the database confirmed
        the loss."""
        self._begin_arrived()
        for id in ids:
            running = self.running.get(id)
            if running is not None and not running.claim_lost:
                running.claim_lost, running.known_to_be_lost = True, confirmed
                running.task.cancel()
                log.warning("worker.claim_lost", execution_id=str(id), attempt=running.attempt.event.attempt)

    def give_up(self, why: str) -> None:
        """End all attempts, and hand them back once the database can be reached. An attempt that another worker has
        taken meanwhile stays with that worker."""
        self._begin_arrived()
        for running in self.running.values():
            if running.given_up is None:
                running.given_up = why
                running.task.cancel()

    # -- the end of the worker -----------------------------------------------------------------------------------

    def stop(self) -> None:
        """Take no more work. `consume` returns once the work that it is claiming is started."""
        self._stopping.set()
        self.parked.stop()
        self.permits.stop()

    async def drain(self, grace: float, at_once: asyncio.Event) -> None:
        """Let running attempts finish within `grace` seconds, and give up the rest. A begun attempt that must run at
        most once fails, and all others are handed back."""
        await self.assignments.close()
        waits = [asyncio.ensure_future(self._nothing_left()), asyncio.ensure_future(at_once.wait())]
        await asyncio.wait(waits, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        self._next.give_up()
        self._begin_arrived()
        for running in list(self.running.values()):
            running.task.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.grace + WRITTEN):
                await self.slots.all_free()
                await self.reports.drained()

    async def _nothing_left(self) -> None:
        await self._next.claimed()
        await self.slots.all_free()
