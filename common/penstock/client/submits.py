"""The submission of executions for calls of a client. Concurrent calls share a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import UUID

from penstock import tracing
from penstock.client import answers
from penstock.client.caller_transaction import CallerTransaction
from penstock.client.clock_skew import with_new_ids
from penstock.client.starts import Request, Starts
from penstock.errors import Conflict, InvalidInput, WrongClock
from penstock.messaging.outbox import Publisher
from penstock.store.executions import executions, plain_executions
from penstock.store.executions.executions import Submission, Submitted
from penstock.store.outbox.queues import EXECUTION_REQUESTED
from penstock.store.session.database import Database, Session, Transaction, retried
from penstock.store.session.group_commit import GroupCommit
from penstock.tracing.spans import START

if TYPE_CHECKING:
    from penstock.advance.first_turns import FirstTurns
    from penstock.store.workflows.first_turns import FirstTurn


class Submits:
    """The submitter of a client. It looks up versions on the client's session, and writes on two sessions of its own."""

    def __init__(self, session: Session, database: Database, publisher: Publisher) -> None:
        self._publisher = publisher
        self._session = session
        self._first_turns: FirstTurns | None = None
        self._engine: asyncio.Task[None] | None = None
        self._is_first_workflow = True
        self._sessions = [database.session(), database.session()]
        self._turn = 0
        self._group: GroupCommit[Submission, tuple[UUID, bool]] = GroupCommit(self._write_starts, writers=2)
        self._patient_session = database.session()
        self._patient_group: GroupCommit[UUID, None] = GroupCommit(self._schedule)
        self._starts = Starts(session)

    async def start(
        self,
        request: Request,
        params: Mapping[str, Any] | None,
        connection: Any,
        watcher: UUID | None = None,
    ) -> UUID:
        """Start one execution, as `Client.start` does. `connection` is an open asyncpg transaction of the caller, or
        None. The submission names `watcher`, which is notified of the execution's end."""
        if connection is not None and request.debounce is not None:
            raise InvalidInput(
                "`debounce` and `connection` are both given",
                hint="Your transaction would keep the other starts of the burst waiting. Start it after your commit.",
            )
        with tracing.producing(START, request.ref, request.tenant):
            [submission] = await self._starts.prepare(request, [params], watcher)
            if connection is not None:
                [answer] = await self._write_in(
                    CallerTransaction(connection, self._sessions[0].codec), [submission]
                )
                return answers.unwrap(answer)
            try:
                id, is_left = await self._group.submit(submission)
            except answers.Stale:
                self._starts.forget()
                [submission] = await self._starts.prepare(request, [params], watcher)
                id, is_left = await self._group.submit(submission)
            if is_left:
                # The submit left the execution to an executor. Schedule it before this call returns. Otherwise the next
                # start of this caller could come into line before it.
                await self._patient_group.submit(id)
            return id

    async def start_many(self, request: Request, params: Sequence[Mapping[str, Any]]) -> list[UUID]:
        """Start an execution for each of `params`, all in one transaction, as `Client.start_many` does."""
        for _ in range(2):
            with tracing.producing(START, request.ref, request.tenant):
                group = await self._starts.prepare(request, params)
                if not group:
                    return []
                try:
                    _, answered = await self._store(group)
                except answers.Stale:
                    self._starts.forget()
                    continue
            return [answers.unwrap(answer) for answer in answered]
        raise Conflict(f"{request.ref} is being redefined again and again", hint="Try again in a moment.")

    async def _write_starts(self, group: Sequence[Submission]) -> Sequence[tuple[UUID, bool] | Exception]:
        """Store the submissions of single starts. The flag of a stored one says that it is left to an executor, which admits
        it."""
        tx, answered = await self._store(group)
        requested = {
            id for message in tx.staged if message.queue == EXECUTION_REQUESTED for id in message.ids
        }
        return [
            answer if isinstance(answer, Exception) else (answer, answer in requested) for answer in answered
        ]

    async def _store(self, group: Sequence[Submission]) -> tuple[Transaction, list[UUID | Exception]]:
        self._turn = (self._turn + 1) % len(self._sessions)
        session = self._sessions[self._turn]
        first_turn = await self._first_turn(group)

        async def write() -> tuple[Transaction, list[UUID | Exception]]:
            nonlocal group
            try:
                async with session.transaction() as tx:
                    if first_turn is not None and first_turn.submission is group[0]:
                        return tx, answers.of_submissions(await self._begin(tx, first_turn), group)
                    if plain_executions.are_alike(group):
                        submitted = await plain_executions.submit(tx, group)
                        return tx, answers.of_submissions(submitted, group)
                    return tx, await self._write_in(tx, group)
            except WrongClock:
                group = with_new_ids(group)
                raise

        tx, answered = await retried(write, deadline=30)
        self._publisher.publish(tx.staged)
        return tx, answered

    async def _first_turn(self, group: Sequence[Submission]) -> FirstTurn | None:
        """Return the first turn of a workflow that is submitted alone, if it can be decided here."""
        if len(group) != 1 or not group[0].is_workflow or not plain_executions.are_alike(group):
            return None
        if self._first_turns is None:
            if self._engine is None and not self._is_first_workflow:
                self._engine = asyncio.create_task(self._load_engine(), name="submits.load_engine")
            self._is_first_workflow = False
            return None
        return await self._first_turns.decide(group[0])

    async def _load_engine(self) -> None:
        """Import the engine in a thread. The import takes more than 100 ms of CPU. No start waits for it, and a program
        that starts a single workflow does without it."""
        module = await asyncio.to_thread(import_module, "penstock.advance.first_turns")
        self._first_turns = module.FirstTurns(self._session)

    async def settle(self) -> None:
        """Wait until all that first turns need is loaded and read."""
        if self._engine is not None:
            await self._engine
        if self._first_turns is not None:
            await self._first_turns.settle()

    async def close(self) -> None:
        """End what goes on beside the starts."""
        if self._engine is not None:
            self._engine.cancel()
            await asyncio.gather(self._engine, return_exceptions=True)
        if self._first_turns is not None:
            await self._first_turns.close()

    async def _begin(self, tx: Transaction, turn: FirstTurn) -> Submitted:
        """Store a workflow with its first turn."""
        from penstock.store.workflows import first_turns

        submitted, was_begun = await first_turns.submit(tx, turn)
        if not was_begun and self._first_turns is not None:
            self._first_turns.refused(turn.submission)
        return submitted

    async def _schedule(self, ids: Sequence[UUID]) -> Sequence[None]:
        """Bring stored executions into the lines of their keys."""

        async def schedule() -> Transaction:
            async with self._patient_session.transaction() as tx:
                await executions.schedule_submitted(tx, ids)
                return tx

        tx = await retried(schedule, deadline=30)
        self._publisher.publish(tx.staged)
        return [None] * len(ids)

    async def _write_in(
        self, tx: Transaction | CallerTransaction, group: Sequence[Submission]
    ) -> list[UUID | Exception]:
        return answers.of_submissions(await executions.submit(tx, group), group)
