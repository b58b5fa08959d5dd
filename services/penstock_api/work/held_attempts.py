"""The attempts that workers hold: the data that they get for each attempt, and the reports that they send. A gateway
caches the attempts that it has sent, and reads other attempts from the database."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import structlog

from penstock.attempts import secret_values
from penstock.attempts.owned_attempt import OwnedAttempt, owned_attempt
from penstock.attempts.references import References
from penstock.errors import NotFound
from penstock.language.moves import REQUESTED
from penstock.language.policies.after_attempt import NOT_BEGUN, End, ending_after
from penstock.messaging.broadcast import CoalescedBroadcast, due_sooner
from penstock.messaging.outbox import Publisher
from penstock.run.outcomes import Outcome
from penstock.run.run_log import LOG_LIMIT
from penstock.service.explain_errors import explained
from penstock.store.executions import remote_attempts
from penstock.store.executions.attempts import AttemptEnd, ClaimedAttempt
from penstock.store.executions.log_lines import NewLine
from penstock.store.session.database import Database, retried
from penstock_api.session_pool import SessionPool
from penstock_api.work.checked_ends import checked_ends, needs_check
from penstock_api.work.definitions import Definitions
from penstock_api.work.remote_worker import RemoteWorker
from penstock_api.work.take import Take

log = structlog.get_logger()

MOST_REMEMBERED = 20_000
"""The maximum number of attempts that a gateway caches."""
PATIENCE_S = 10.0
"""Seconds for which a call retries transient errors of the database. Afterwards the worker sends it again."""


Key = tuple[UUID, int]
"""An execution and the number of an attempt."""


@dataclass(slots=True)
class _Remembered:
    owned: OwnedAttempt
    log_left: int = LOG_LIMIT
    """The number of bytes that the attempt may still log through this gateway."""


class HeldAttempts:
    """The attempts of all workers of this gateway."""

    def __init__(
        self, database: Database, pool: SessionPool, publisher: Publisher, definitions: Definitions
    ) -> None:
        self._pool = pool
        self._publisher = publisher
        self._definitions = definitions
        self._codec = database.codec
        self._timers = CoalescedBroadcast(partial(due_sooner, publisher.transport, "timers"), "timers")
        self.references = References(database)
        self._remembered: OrderedDict[tuple[UUID, UUID, int], _Remembered] = OrderedDict()

    def begin(
        self, worker: RemoteWorker, claim: UUID, attempts: Iterable[ClaimedAttempt]
    ) -> list[OwnedAttempt]:
        """Return attempts that a worker has claimed, and cache them."""
        owned = [
            owned_attempt(
                attempt,
                self._definitions[attempt.definition_id],
                worker.identity,
                codec=self._codec,
                claim=claim,
            )
            for attempt in attempts
        ]
        for entry in owned:
            self._remember(worker, entry)
        return owned

    async def complete(self, worker: RemoteWorker, owned: Sequence[OwnedAttempt]) -> list[OwnedAttempt]:
        """Resolve the references in the parameters of these attempts. Return the attempts that may begin. The other
        attempts end as failed."""
        ready: list[OwnedAttempt] = []
        failed: list[tuple[OwnedAttempt, Exception]] = []
        for entry in owned:
            try:
                await self._follow(worker, entry)
                ready.append(entry)
            except Exception as error:
                failed.append((entry, error))
        await self.fail(worker, failed)
        return ready

    async def fail(self, worker: RemoteWorker, failed: Sequence[tuple[OwnedAttempt, Exception]]) -> None:
        """End attempts that cannot be sent to their worker, each with its error."""
        for entry, error in failed:
            log.error("gateway.attempt_not_sent", execution_id=str(entry.event.execution_id), exc_info=error)
        ends: dict[Key, End] = {
            (entry.event.execution_id, entry.event.attempt): self.references.concealed(
                entry, Outcome.failed(explained(error))
            )
            for entry, error in failed
        }
        if ends:
            await self.finish(worker, ends)

    async def hand_back(
        self, worker: RemoteWorker, owned: Sequence[OwnedAttempt], *, of: Take | None = None
    ) -> None:
        """Return attempts to their routes that never reached their worker. With `of`, do nothing if the worker has sent
        that take again, since the later call may have received them."""
        ends = {(entry.event.execution_id, entry.event.attempt): NOT_BEGUN for entry in owned}
        await self.finish(worker, ends, of=of)

    async def finish(
        self, worker: RemoteWorker, ends: Mapping[Key, End], *, of: Take | None = None
    ) -> set[UUID]:
        """Record the ends of attempts. Return the executions with attempts that the worker owned, or had ended before.
        The worker has lost all other attempts. With `of`, record nothing if a later call of that take has looked the
        attempts up."""
        held = await self._held(worker, set(ends))
        ends = {**ends, **await self._checked({key: end for key, end in ends.items() if key in held})}
        stored: list[AttemptEnd] = []
        for key, end in ends.items():
            if (entry := held.get(key)) is not None:
                stored.append(await self._ended(entry.owned, end))
            else:  # the statement finds out whether this worker had ended the attempt before
                stored.append(AttemptEnd(*key, NOT_BEGUN))
        stored.sort(key=lambda end: end.execution_id.int)  # the order in which all processes lock rows

        async def write() -> set[UUID]:
            async with self._pool.session() as session, session.transaction() as tx:
                ids = [end.execution_id for end in stored]
                if of is not None and not await remote_attempts.is_last_call(tx, of.claim, of.calls, ids):
                    return set()
                settled = await remote_attempts.finish(tx, worker.actor, worker.id, stored)
            self._publisher.publish(tx.staged)
            return settled

        settled = await retried(write, deadline=PATIENCE_S)
        if any(end.ending.status == REQUESTED for end in stored):
            self._timers.send()  # the executors' timers have to know when these executions are retried
        for attempt_end in stored:
            gone = self._remembered.pop((worker.id, attempt_end.execution_id, attempt_end.attempt), None)
            if gone is not None and gone.owned.traced is not None:
                gone.owned.traced.end(attempt_end.ending.status, attempt_end.ending.error)
        return settled

    async def add_lines(self, worker: RemoteWorker, lines: Sequence[NewLine]) -> list[UUID]:
        """Store lines that attempts have written, without secrets. Return the executions with attempts that the worker
        does not own. Lines beyond LOG_LIMIT bytes of an attempt are dropped."""
        held = await self._held(worker, {(line.execution_id, line.attempt) for line in lines})
        masked = []
        for line in lines:
            entry = held.get((line.execution_id, line.attempt))
            if entry is not None:
                entry.log_left -= len(line.line)
                if entry.log_left < 0:
                    continue
                text = self.references.conceal_line(entry.owned, line.line.replace("\0", "�"))
                masked.append(line._replace(line=text))
        stale = {line.execution_id for line in lines if (line.execution_id, line.attempt) not in held}
        if masked:
            name = worker.identity.name

            async def write() -> list[UUID]:
                async with self._pool.session() as session:
                    return await remote_attempts.store_lines(session, masked, worker.id, name)

            stale.update(await retried(write, deadline=PATIENCE_S))
        return sorted(stale, key=lambda id: id.int)

    def forget(self, worker: UUID, executions: Iterable[UUID]) -> None:
        """Remove attempts that a worker has lost from the cache."""
        ids = set(executions)
        for key in [key for key in self._remembered if key[0] == worker and key[1] in ids]:
            del self._remembered[key]

    async def _checked(self, ends: Mapping[Key, End]) -> Mapping[Key, End]:
        async def read() -> Mapping[Key, End]:
            async with self._pool.session() as session:
                return await checked_ends(session, ends)

        return await retried(read, deadline=PATIENCE_S) if needs_check(ends) else ends

    async def _ended(self, owned: OwnedAttempt, end: End) -> AttemptEnd:
        if isinstance(end, Outcome):
            end = await self.references.put_away(owned, end)
        version = owned.version
        return owned.ended(ending_after(end, version.recovery, version.retry, owned.failures))

    async def _held(self, worker: RemoteWorker, keys: set[Key]) -> Mapping[Key, _Remembered]:
        """Return the attempts among these that the worker held when they were last read."""
        held = {key: entry for key in keys if (entry := self._remembered.get((worker.id, *key))) is not None}
        missing = [execution for execution, attempt in keys if (execution, attempt) not in held]
        if missing:

            async def read() -> list[ClaimedAttempt]:
                async with self._pool.session() as session:
                    rows = await remote_attempts.owned(session, worker.id, missing)
                    await self._definitions.look_up(session, [row.definition_id for row in rows])
                    return rows

            rows = await retried(read, deadline=PATIENCE_S)
            for owned in self.begin(worker, worker.id, rows):
                key = owned.event.execution_id, owned.event.attempt
                if key in keys:
                    await self._reveal(worker, owned)
                    held[key] = self._remembered[(worker.id, *key)]
        return held

    async def _reveal(self, worker: RemoteWorker, owned: OwnedAttempt) -> None:
        """Read the secrets that the outputs of an attempt must not show, if another gateway has sent the attempt. A
        secret that was deleted since is not masked."""
        try:
            await self._follow(worker, owned)
        except NotFound as error:
            log.warning("gateway.secret_is_gone", reason=error.message)

    async def _follow(self, worker: RemoteWorker, owned: OwnedAttempt) -> None:
        """Resolve the references in the parameters of an attempt, and in the options of its action."""
        if owned.refers:
            await self.references.follow(owned, worker.id)
        if secret_values.are_named(owned):
            await self.references.reveal_named(owned, worker.id)

    def _remember(self, worker: RemoteWorker, owned: OwnedAttempt) -> None:
        key = worker.id, owned.event.execution_id, owned.event.attempt
        self._remembered[key] = _Remembered(owned)
        while len(self._remembered) > MOST_REMEMBERED:
            self._remembered.popitem(last=False)
