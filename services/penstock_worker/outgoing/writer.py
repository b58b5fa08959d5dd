"""The checks of requests, and their writes. Those that arrive during a transaction share the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from penstock.attempts.new_effect import NewEffect
from penstock.client import answers, durable_commands
from penstock.client.publishing import Publishing
from penstock.client.starts import Request as StartRequest
from penstock.client.starts import Starts
from penstock.errors import ClaimLost, ConfigurationError, Conflict, InvalidInput, NotFound, WrongClock
from penstock.language.terms.event_sources import ACTION
from penstock.language.terms.ids import new_id
from penstock.messaging.outbox import Publisher
from penstock.operate.outside import callback_path
from penstock.run.outgoing import Effect, Publish, Signal, Start
from penstock.run.sent_signal import SentSignal
from penstock.run.task_executors import TaskReadyEvent
from penstock.store.durable.steps import NewSignal
from penstock.store.events import events
from penstock.store.events.events import NewEvent, StoredEvents
from penstock.store.executions import effects, executions
from penstock.store.executions.effects import Kind
from penstock.store.executions.executions import Submission
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction, retried
from penstock.store.session.group_commit import GroupCommit

RENEWALS = 3
"""The number of repeated checks of a start whose definition was replaced meanwhile."""


class EffectWriter:
    """The writer of a worker. It checks requests on one session, and writes them on another."""

    def __init__(self, looking: Session, writing: Session, worker: UUID, publisher: Publisher) -> None:
        self._writing = writing
        self._worker = worker
        self._publisher = publisher
        self._looking = looking
        self._starts = Starts(looking)
        self._publishing = Publishing(looking, publisher)
        self._group: GroupCommit[NewEffect, UUID] = GroupCommit(self._write, max_items=200)

    async def checked(self, event: TaskReadyEvent, request: Effect) -> NewEffect:
        """Return a request of an attempt, ready to be written. Raises NotFound if the target does not exist, and
        InvalidInput if a value or an option is not valid. Raises DefinitionError if the name of a signal is not."""
        tenant = event.namespace.partition("::")[0]
        if isinstance(request, Signal):
            return NewEffect(event, request, await self._checked_signal(tenant, request))
        if isinstance(request, Publish):
            if not isinstance(request.trigger, str):
                raise InvalidInput(
                    "the trigger is not a text",
                    hint="Give the ref of the trigger, such as shop.order_placed.",
                )
            row: NewEvent | Submission = await self._publishing.checked(
                request.trigger, request.payload, key=request.key, tenant=tenant, source=ACTION
            )
            return NewEffect(event, request, row)
        if not isinstance(request.ref, str) or not isinstance(request.params, Mapping):
            raise InvalidInput(
                "a start takes a ref and a mapping of parameters", hint='start("shop.charge", {"order": 7})'
            )
        start = StartRequest(
            request.ref,
            request.key,
            tenant,
            request.priority,
            request.delay,
            request.at,
            labels=request.labels,
            debounce=request.debounce,
            debounce_key=request.debounce_key,
            at_most=request.at_most,
            keep=request.keep,
            started_by=event.execution_id,
        )
        [row] = await self._starts.prepare(start, [request.params])
        return NewEffect(event, request, row)

    async def _checked_signal(self, tenant: str, request: Signal) -> NewSignal:
        cap = self._writing.settings.payload_cap
        id = await durable_commands.receiver_of(self._looking, request.execution_id, request.key, tenant)
        new = durable_commands.checked_signal(id, request.name, request.value, cap)
        if await executions.tenant(self._looking, new.execution_id) != tenant:
            raise NotFound(
                f"no execution {new.execution_id}",
                hint="Check the id. Or the execution belongs to another tenant, or was deleted after its retention.",
            )
        return new

    async def write(self, effect: NewEffect) -> UUID | SentSignal:
        """Store a request, and return the id of its event or execution, or the answer to its signal. Raises ClaimLost
        if the worker no longer owns the attempt. Raises Conflict if the key belongs to another request, or the signal
        cannot be received. Raises NotFound or InvalidInput if a changed definition no longer takes the request."""
        if isinstance(effect.row, NewSignal):
            return await self._signal(effect.event, effect.row)
        for _ in range(RENEWALS):
            try:
                return await self._group.submit(effect)
            except answers.Stale:
                [effect] = await self.renewed([effect])
        raise Conflict("a definition is being redefined again and again", hint="Try again in a moment.")

    async def _signal(self, event: TaskReadyEvent, new: NewSignal) -> SentSignal:
        """Send a signal, once even if the answer to the commit is lost. Raises ClaimLost if the worker no longer owns
        the attempt, and Conflict if the execution has ended or is not a durable function."""

        async def write(tx: Transaction) -> SentSignal:
            await effects.lock_in_order(tx, [event.execution_id, new.execution_id])
            if not await effects.lock_owned(tx, self._worker, [(event.execution_id, event.attempt)]):
                raise _lost(event)
            return await durable_commands.send_signal(tx, new)

        tx, sent = await committed_once(self._writing, write)
        self._publisher.publish(tx.staged)
        return sent

    async def callback(self, event: TaskReadyEvent) -> str:
        """Return the address by which something outside completes an attempt. Raises ConfigurationError without
        PENSTOCK_API_ADDRESS, and ClaimLost if the worker no longer owns the attempt."""
        address = self._writing.settings.api_address
        if address is None:
            raise ConfigurationError(
                "this worker does not know the address of the API, which a callback needs",
                hint="Set PENSTOCK_API_ADDRESS for workers too, such as https://penstock.example.org.",
            )
        path = await retried(
            lambda: callback_path(self._writing, self._worker, event.execution_id, event.attempt)
        )
        if path is None:
            raise _lost(event)
        return address.rstrip("/") + path

    async def renewed(self, group: Sequence[NewEffect]) -> list[NewEffect]:
        """Return requests that are checked again, with the current definitions. Raises NotFound if a target is gone or
        retired, and InvalidInput if the parameters do not fit its present schema."""
        self._starts.forget()
        return [
            effect
            if not isinstance(effect.request, Start)
            else await self.checked(effect.event, effect.request)
            for effect in group
        ]

    async def _write(self, group: Sequence[NewEffect]) -> Sequence[UUID | Exception]:
        tries = 0

        async def write() -> tuple[Transaction, list[UUID | Exception]]:
            nonlocal tries, group
            tries += 1
            try:
                async with self._writing.transaction() as tx:
                    attempts = {(effect.event.execution_id, effect.event.attempt) for effect in group}
                    owned = await effects.lock_owned(tx, self._worker, sorted(attempts))
                    stored = await store(
                        tx, [e for e in group if e.event.execution_id in owned], retries=tries > 1
                    )
                    answered = iter(stored)
                    return tx, [
                        next(answered) if e.event.execution_id in owned else _lost(e.event) for e in group
                    ]
            except WrongClock:
                group = with_new_ids(group)
                raise

        tx, answered = await retried(write, deadline=30)
        self._publisher.publish(tx.staged)
        return answered


async def store(tx: Transaction, group: Sequence[NewEffect], *, retries: bool) -> list[UUID | Exception]:
    """Store the events and executions of requests, and record them as effects. None of the requests is a signal. Return for
    each its id, or the Conflict with which it was refused. `retries`: an earlier try may have been committed. Raises Stale,
    and stores nothing, if the definition of a start is no longer current."""
    submissions = [e.row for e in group if isinstance(e.row, Submission)]
    new_events = [e.row for e in group if isinstance(e.row, NewEvent)]
    by_row: dict[UUID, UUID | Exception] = {}
    if submissions:
        submitted = answers.of_submissions(await executions.submit(tx, submissions), submissions)
        by_row |= zip((s.id for s in submissions), submitted, strict=True)
    if new_events:
        unwritten = new_events
        if retries:
            stored_ids = {event.id for event in await events.read(tx, [event.id for event in new_events])}
            unwritten = [event for event in new_events if event.id not in stored_ids]
        stored = await events.store(tx, unwritten, matched=False) if unwritten else StoredEvents([], {}, {})
        by_row |= zip((e.id for e in new_events), answers.of_events(stored, new_events), strict=True)
    answered = [by_row[e.row.id] for e in group if not isinstance(e.row, NewSignal)]
    caused: list[tuple[UUID, UUID, Kind]] = [
        (effect.event.execution_id, answer, effect.kind)
        for effect, answer in zip(group, answered, strict=True)
        if isinstance(answer, UUID)
    ]
    if caused:
        await effects.record(tx, caused)
    return answered


async def lock_for_signals(tx: Transaction, group: Sequence[NewEffect]) -> None:
    """Lock the executions of attempts that end with signals, and the receivers of these signals, in the order of their ids."""
    signals = [
        (effect.event.execution_id, effect.row) for effect in group if isinstance(effect.row, NewSignal)
    ]
    if signals:
        await effects.lock_in_order(tx, [id for end, new in signals for id in (end, new.execution_id)])


async def store_with_ends(
    tx: Transaction, group: Sequence[NewEffect], moved: set[UUID], waiting: set[UUID]
) -> None:
    """Store the transactional requests of attempts in the transaction that ends them, and send their signals.

    `moved` are the executions that the transaction moved. Those in `waiting` were to wait. Their requests are stored
    only if they do: an execution that was cancelled meanwhile stores nothing. Raises Conflict if a key belongs to
    another request, or a signal cannot be received. Raises Stale if a definition is not current any more."""
    refused = waiting - await effects.filter_waiting(tx, sorted(waiting)) if waiting else set()
    effective = [e for e in group if e.event.execution_id in moved and e.event.execution_id not in refused]
    stored = [e for e in effective if not isinstance(e.row, NewSignal)]
    for answer in await store(tx, stored, retries=False) if stored else ():
        answers.unwrap(answer)
    for effect in effective:
        if isinstance(effect.row, NewSignal):
            await durable_commands.send_signal(tx, effect.row)


def with_new_ids(group: Sequence[NewEffect]) -> list[NewEffect]:
    """Return requests with new ids, which follow the database's clock since its rejection."""
    return [
        effect if isinstance(effect.row, NewSignal) else replace(effect, row=replace(effect.row, id=new_id()))
        for effect in group
    ]


def _lost(event: TaskReadyEvent) -> ClaimLost:
    return ClaimLost(
        f"attempt {event.attempt} of {event.execution_id} is not this worker's any more",
        hint="Nothing was stored. Another attempt continues, or the execution has ended.",
    )
