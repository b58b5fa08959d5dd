"""The backend of a worker with a session with the database and a connection to the broker."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache, partial

from penstock.attempts import secret_values
from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.attempts.references import References
from penstock.language.policies.after_attempt import End, Ending, ending_after
from penstock.messaging.broadcast import CoalescedBroadcast, due_sooner
from penstock.messaging.relay import offer_again
from penstock.run.outcomes import Outcome
from penstock.run.task_executors import RunnableAction
from penstock.service.assembly import Parts
from penstock.service.heartbeat import Identity
from penstock.store.executions.result_watch import ResultWatch
from penstock.store.outbox.queues import WORK
from penstock_worker.claiming.assignments import FRESH_S, Assignments
from penstock_worker.claiming.claims import Claiming, Claims, OpenClaims
from penstock_worker.claiming.parked_queues import ParkedQueues
from penstock_worker.claiming.parked_work import ParkedWork
from penstock_worker.claiming.permits import RENEWAL_S, Permits
from penstock_worker.claiming.route_consumer import RouteConsumer
from penstock_worker.direct.attempt_tokens import AttemptTokens
from penstock_worker.durable.runs import DurableRuns
from penstock_worker.ending.next_work import NextWork
from penstock_worker.ending.reports import Reports
from penstock_worker.ending.slow_actions import ActionDurations
from penstock_worker.outgoing.attempt_requests import AttemptRequests
from penstock_worker.outgoing.writer import EffectWriter
from penstock_worker.records.backend import NO_COSTS, Durable, Requests
from penstock_worker.records.worker_state import WorkerState

ENVELOPE = 20
"""The number of executions in a full envelope, and so in one delivery."""

Sink = Callable[[OwnedAttempt, str, str], None]
"""A function that takes an attempt, a stream, and a line that the attempt wrote to the stream."""


class DirectBackend:
    """The backend that claims by SQL what arrives on the worker's routes, and writes ends in transactions."""

    def __init__(
        self,
        parts: Parts,
        worker: Identity,
        actions: Callable[[str], RunnableAction | None],
        state: WorkerState,
        *,
        durations: ActionDurations,
        sink: Sink,
    ) -> None:
        self._parts = parts
        settings = parts.settings
        self._ends = cache(parts.metrics.attempts.labels)  # looking up a label takes longer than counting
        self._durations = durations
        self._sink = sink
        self._slots = slots = state.slots
        self._queues: set[str] = set()
        self._stopping = asyncio.Event()
        self._session = parts.database.session()
        self._references = References(parts.database)
        self._tokens = AttemptTokens(parts)
        self.parked = ParkedQueues(self._queues)
        claims = Claims(
            self._session, worker, actions, slots, state.room, state.batches, settings.route_executors
        )
        open_claims = OpenClaims()
        self.permits = Permits(
            parts.database.session(relaxed=True),
            worker.id,
            slots,
            claims.assignable,
            behind=parts.transport.outbox_is_queue,
            every=min(RENEWAL_S, settings.stale_threshold / 3),
        )
        self.claiming = Claiming(
            claims,
            open_claims,
            slots,
            state.room,
            state.batches,
            state.inbox,
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
            slots,
            self._report,
            fresh=min(FRESH_S, settings.stale_threshold),
        )
        self._watch = ResultWatch(parts.database)
        self._durable = DurableRuns(parts, worker, slots, state.running, self._watch)
        self._effects = EffectWriter(
            parts.database.session(), parts.database.session(), worker.id, parts.publisher
        )
        self.parked_work = ParkedWork(
            self.parked, slots, self.claiming, self._stopping, settings.poll_interval
        )
        self._next = NextWork(parts.publisher, slots, self._queues, self.claiming, self._stopping)
        self.reports = Reports(
            parts.database.session(),
            worker.id,
            CoalescedBroadcast(partial(due_sooner, parts.transport, "timers"), "timers"),
            slots,
            self._next,
            open_claims,
            self.parked,
            self._effects,
        )

    # -- arriving work -------------------------------------------------------------------------------------------

    async def consume(self, route: str) -> None:
        """Claim work of a route until the worker is asked to stop."""
        queue = WORK + route
        prefetch = math.ceil(self._slots.count / ENVELOPE)  # enough to fill all slots
        subscription = await self._parts.transport.subscribe(queue, prefetch)
        try:
            await offer_again(self._parts.transport, self._session, queue, self._parts.process)
            self._queues.add(queue)
            await RouteConsumer(subscription, prefetch, self._slots, self.claiming, self._stopping).run()
        finally:
            self._queues.discard(queue)
            self.permits.is_full(queue)
            await subscription.close()

    async def keep_permits(self, refs: Sequence[str]) -> None:
        """Let submits assign work to this worker until it is asked to stop. `refs` are actions for which it has the
        code."""
        await self.claiming.claims.look_up_current(refs)
        await self.permits.run(self.assignments.look_soon)

    def listens(self) -> None:
        """Note that the database can notify this worker from now on. Earlier notifications may be lost."""
        self.permits.listens()
        self.assignments.look_soon(0.0)

    # -- an attempt ----------------------------------------------------------------------------------------------

    @property
    def result_limit(self) -> int:
        return self._references.limit

    def is_incomplete(self, owned: OwnedAttempt) -> bool:
        return owned.refers or secret_values.are_named(owned) or self._tokens.is_needed(owned)

    async def complete(self, owned: OwnedAttempt) -> None:
        """Resolve the references in the attempt's parameters, and add its token."""
        if owned.refers:
            await self._references.follow(owned, self._parts.process)
        if secret_values.are_named(owned):
            await self._references.reveal_named(owned, self._parts.process)
        if self._tokens.is_needed(owned):
            await self._tokens.add(owned)

    def durable(self, owned: OwnedAttempt) -> Durable | None:
        return self._durable.of(owned)

    def requests(self, owned: OwnedAttempt) -> Requests:
        return AttemptRequests(owned, self._effects, self._watch)

    def add_line(self, owned: OwnedAttempt, stream: str, line: str) -> None:
        self._sink(owned, stream, self.conceal_line(owned, line))

    def conceal_line(self, owned: OwnedAttempt, line: str) -> str:
        return self._references.conceal_line(owned, line)

    def concealed(self, owned: OwnedAttempt, outcome: Outcome) -> Outcome:
        return self._references.concealed(owned, outcome)

    async def put_away(self, owned: OwnedAttempt, outcome: Outcome) -> Outcome:
        """Return an outcome without secrets. A result that is too large for the database goes to the result store."""
        return await self._references.put_away(owned, outcome)

    def took(self, owned: OwnedAttempt, seconds: float) -> None:
        self._durations.took(owned.event.namespace, seconds)

    def end(self, owned: OwnedAttempt, end: End, costs: Mapping[str, Decimal] = NO_COSTS) -> None:
        version = owned.version
        if isinstance(end, Outcome) and "resume" in (end.inquiry or ()):
            owned.effects.clear()  # the action runs again from its start, and makes these requests again
        ending = ending_after(end, version.recovery, version.retry, owned.failures)
        self._report(owned, replace(ending, costs=dict(costs)) if costs else ending)

    def _report(self, owned: OwnedAttempt, ending: Ending) -> None:
        self._ends(owned.event.action, ending.status).inc()
        self.reports.add(owned, ending)

    def discard(self, owned: OwnedAttempt, *, known_to_be_lost: bool) -> None:
        self.reports.discard(owned, known_to_be_lost=known_to_be_lost)

    def has_room(self) -> None:
        self.parked.has_room()

    # -- the end of the worker -----------------------------------------------------------------------------------

    def stop(self) -> None:
        """Claim no more work. `consume` returns once the work that it is claiming is started."""
        self._stopping.set()
        self.parked.stop()
        self.permits.stop()

    async def close(self) -> None:
        await self.assignments.close()

    async def claimed(self) -> None:
        await self._next.claimed()

    def give_up_claims(self) -> None:
        self._next.give_up()

    async def reported(self) -> None:
        await self.reports.drained()
