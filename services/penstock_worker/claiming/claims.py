"""The claims of a worker. They take work from a queue, complete it with all that is needed to run it, and pass it into
the inbox."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from penstock.attempts.action_versions import ActionVersions
from penstock.attempts.owned_attempt import OwnedAttempt, owned_attempt
from penstock.language.terms.ids import new_id
from penstock.messaging.metrics import Metrics
from penstock.messaging.outbox import Publisher
from penstock.run.run import executor_name
from penstock.run.task_executors import RunnableAction
from penstock.service.heartbeat import Identity
from penstock.store.definitions import catalog
from penstock.store.executions import attempts
from penstock.store.executions.attempts import ClaimAnswer, Claimant, ClaimedAttempt
from penstock.store.outbox.queues import WORK
from penstock.store.session.database import Session, Transaction, retried
from penstock.store.session.staged_messages import StagedMessage
from penstock_worker.claiming.parked_queues import ParkedQueues
from penstock_worker.claiming.permits import Permits
from penstock_worker.records.batches import Batches
from penstock_worker.records.executor_room import ExecutorRoom
from penstock_worker.records.slots import Slots
from penstock_worker.records.worker_state import Inbox


@dataclass(slots=True)
class Claimed:
    """The attempts that one claim has taken. `staged` are messages by which other workers take what this worker did
    not. `unknown` are definitions that the worker has to look up before it can claim their executions. `parked`, after
    `claim`: executions that the worker cannot run were parked. After `claim_parked`: parked work was for this worker."""

    attempts: list[OwnedAttempt]
    staged: list[StagedMessage]
    parked: bool
    unknown: list[int]


class Claims:
    """The claims of one worker. It claims only work for which it is known to have the code, a free slot, and room in a
    task executor. If executions have a version that the worker has not met, the database names the version and leaves
    the executions. The worker looks the version up, and claims again.

    The caller gets what a claim has taken before the next query is sent, so that an error cannot lose it."""

    def __init__(
        self,
        session: Session,
        worker: Identity,
        actions: Callable[[str], RunnableAction | None],
        slots: Slots,
        room: ExecutorRoom,
        batches: Batches,
        route_executors: Mapping[str, str],
    ) -> None:
        self._session = session
        self._worker = worker
        self._versions = ActionVersions(session, worker, actions)
        self._slots = slots
        self._room = room
        self._batches = batches
        self._of_queues = {WORK + route: executor for route, executor in route_executors.items()}

    async def claim(self, queue: str, ids: Sequence[UUID]) -> AsyncIterator[Claimed]:
        """Claim as many of `ids` as there is room for. On an ordered route, claim instead the executions that are next
        in order."""
        remaining = list(ids)
        fills = len(remaining) > self._slots.unpromised and bool(self._fillable(queue))
        while remaining:
            answer = await self._answered(
                queue, partial(attempts.claim, self._session, ids=remaining), len(remaining), fills=fills
            )
            yield answer
            claimed = {attempt.event.execution_id for attempt in answer.attempts}
            # On an ordered route the claimed executions may not be those that the message names. Each has used up one
            # turn of the message.
            turns = len(remaining) - len(claimed) if answer.unknown else 0
            remaining = [id for id in remaining if id not in claimed][:turns]
            if not fills:
                await self.look_up(answer.unknown)
            fills = False

    async def claim_parked(self, queue: str) -> AsyncIterator[Claimed]:
        """Claim as many parked executions as there is room for. `parked`: some of them were for this worker."""
        while self._slots.can_claim:
            claim = partial(attempts.claim_parked, self._session)
            if room := self._fillable(queue):
                answer = await self._answered(queue, claim, sum(room.values()), fills=True)
                yield answer
                if answer.attempts:
                    continue
            if not self._slots.free:
                return
            answer = await self._answered(queue, claim, self._slots.unpromised)
            yield answer
            if not answer.attempts and not answer.unknown:
                return
            await self.look_up(answer.unknown)

    async def claim_in(self, tx: Transaction, id: UUID, queue: str, ids: Sequence[UUID]) -> Claimed:
        """Claim these executions under the claim id `id`, in the transaction that has scheduled them. They belong to
        this worker once it has committed. Executions of a version that the worker would have to look up, or with
        batches by labels, are not claimed."""
        claimant = self.claimant_in_place(id, len(ids), queue)
        return self.claimed(id, queue, await attempts.claim(tx, claimant, queue, ids, len(ids)))

    async def find(self, id: UUID) -> tuple[str, Claimed] | None:
        """Return the queue and the attempts that were claimed under this id, if the transaction that claimed them has
        committed."""
        queue = await retried(lambda: attempts.claimed_of(self._session, id))
        if queue is None:
            return None
        rows = await retried(lambda: attempts.claimed(self._session, id))
        return queue, self.claimed(id, queue, ClaimAnswer(rows))

    def alike(self, queues: Collection[str]) -> bool:
        """Return whether the same task executors run the work of all these queues."""
        return len({self._of_queues.get(queue) for queue in queues}) == 1

    async def _answered(
        self,
        queue: str,
        claim: Callable[..., Awaitable[ClaimAnswer]],
        offered: int,
        *,
        fills: bool = False,
    ) -> Claimed:
        """Claim at most `offered` executions by calling `claim`, and no more than there are free slots. With `fills`,
        claim only for batches, and no more than the batches have room for.

        Each try has a claim id of its own. The server may carry out a try that lost its connection later than the
        next one. What it takes then is unknown to this worker, and is found by the row of its own claim."""
        tries: list[UUID] = []

        async def ask() -> Claimed:
            for id in tries:
                self.over(id)
            under_way = sum([len(await attempts.claimed(self._session, id)) for id in tries])
            id = new_id()
            if fills:
                claimant, limit = self._filler(id, queue), max(0, offered - under_way)
            else:
                limit = max(0, min(self._slots.unpromised, offered) - under_way)
                claimant = self.claimant(id, limit, queue)
            earlier = list(tries)
            tries.append(id)
            claimed = self.claimed(id, queue, await claim(who=claimant, queue=queue, most=limit))
            for id in earlier:  # it may have been committed although its answer was lost
                answer = ClaimAnswer(await attempts.claimed(self._session, id))
                claimed.attempts += self.claimed(id, queue, answer).attempts
            return claimed

        try:
            return await retried(ask)
        finally:
            for id in tries:
                self.over(id)  # the caller takes the slots before any other task runs

    def claimed(self, id: UUID, queue: str, answer: ClaimAnswer) -> Claimed:
        """Return what an answer says was claimed from this queue under the claim id `id`."""
        of_route = self._of_queues.get(queue)
        owned = [self._owned(id, attempt, of_route) for attempt in answer.attempts]
        return Claimed(owned, answer.staged, answer.parked, answer.unknown_definitions)

    def claimant(self, claim: UUID, limit: int, queue: str) -> Claimant:
        """Return the claimant of at most `limit` attempts of this queue. Call `over` once the claim has ended."""
        of_route = self._of_queues.get(queue)
        versions = self._versions
        full = self._room.promise(claim, limit)
        limited = [
            (definition, name, full[name])
            for definition in (versions.known if full else ())
            if (name := executor_name(versions[definition].action, of_route)) in full
            and versions[definition].batch is None
        ]
        for definition in versions.batching if full else ():
            name = executor_name(versions[definition].action, of_route)
            if name in full:
                limited.append(self._limited_batch(definition, queue, full[name]))
        return Claimant(
            self._worker.id, claim, versions.known, versions.lacking, limited, bool(versions.by_labels)
        )

    def claimant_in_place(self, claim: UUID, limit: int, queue: str) -> Claimant:
        """Return the claimant of a claim that commits together with other work. It does not know the definitions with
        batches by labels, since such a claim does not return labels. These batches wait for further executions anyway."""
        claimant = self.claimant(claim, limit, queue)
        by_labels = set(self._versions.by_labels)
        if not by_labels:
            return claimant
        definitions = [definition for definition in claimant.known if definition not in by_labels]
        return replace(claimant, known=definitions, reads_labels=False)

    def _filler(self, claim: UUID, queue: str) -> Claimant:
        """Return the claimant of attempts for batches. It neither knows nor lacks the other definitions of this worker,
        so their executions stay as they are."""
        room = self._fillable(queue)
        places = self._places(queue)
        limited = [self._limited_batch(definition, queue, places[definition]) for definition in room]
        by_labels = not room.keys().isdisjoint(self._versions.by_labels)
        return Claimant(self._worker.id, claim, list(room), self._versions.lacking, limited, by_labels)

    def _fillable(self, queue: str) -> dict[int, int]:
        """Return, by definition, the number of attempts that the batches of this worker can take."""
        places = self._places(queue) if self._slots.can_claim else {}
        room = {definition: self._batch_room(definition, count) for definition, count in places.items()}
        return {definition: count for definition, count in room.items() if count}

    def _places(self, queue: str) -> dict[int, int]:
        """Return, by definition, the number of further batches that could be called now."""
        if not self._versions.batching:
            return {}
        of_route, free = self._of_queues.get(queue), self._slots.unpromised
        full = self._room.full(free)
        return {
            definition: min(free, full.get(executor_name(self._versions[definition].action, of_route), free))
            for definition in self._versions.batching
        }

    def _batch_room(self, definition: int, places: int) -> int:
        version = self._versions[definition]
        assert version.batch is not None
        return self._batches.room_of(version.action.ref, version.batch.size, places=places)

    def _limited_batch(self, definition: int, queue: str, places: int) -> tuple[int, str, int]:
        """Return the bound on the attempts that are claimed of a definition with batches. All versions of an action
        share it."""
        action = self._versions[definition].action
        name = executor_name(action, self._of_queues.get(queue))
        return definition, f"{name} for batches of {action.ref}", self._batch_room(definition, places)

    def assignable(self, queue: str) -> list[int]:
        """Return the definitions that a submit may assign to this worker on this queue: those with a task executor that
        has a place for each slot.

        An action that must run at most once is left out, and claimed by the worker itself. If the worker had just died,
        an assigned execution would end as failed although it never began. An action with batches is left out too:
        submits would spread its items over all workers."""
        of_route = self._of_queues.get(queue)
        return [
            definition
            for definition in self._versions.known
            if (version := self._versions[definition]).recovery.on_worker_loss == "rerun"
            and version.batch is None
            and self._room.is_ample(executor_name(version.action, of_route))
        ]

    def over(self, claim: UUID) -> None:
        """Release the promised room of a claim. Its attempts are started, or there were none."""
        self._room.over(claim)

    async def look_up(self, definitions: Sequence[int]) -> None:
        """Find out which of these definitions this worker can run."""
        if definitions:
            await retried(lambda: self._versions.look_up(definitions))

    async def look_up_current(self, refs: Sequence[str]) -> None:
        """Find out which of the current versions of these actions this worker can run."""
        rows = await retried(lambda: catalog.current(self._session, ["action"], list(refs)))
        await self.look_up([row.definition_id for row in rows])

    def _owned(self, claim: UUID, attempt: ClaimedAttempt, of_route: str | None) -> OwnedAttempt:
        version = self._versions[attempt.definition_id]
        return owned_attempt(
            attempt, version, self._worker, codec=self._session.codec, claim=claim, of_route=of_route
        )


class OpenClaims:
    """The number of unreported attempts of each claim of a worker. The report of a claim's last attempt deletes the row
    of the claim."""

    def __init__(self) -> None:
        self._left: dict[UUID, int] = {}
        self._kept: set[UUID] = set()

    def ids(self) -> list[UUID]:
        """Return the claims with unreported attempts."""
        return list(self._left)

    def open(self, claim: UUID) -> None:
        """Add an attempt to a claim, which may be new."""
        self._left[claim] = self._left.get(claim, 0) + 1

    def keep(self, claim: UUID) -> None:
        """Keep the row of a claim. By this row, one of its attempts is later noticed as lost and taken back."""
        self._kept.add(claim)

    def count_down(self, claim: UUID) -> UUID | None:
        """Count an attempt as reported or dropped. Return the claim if its row is to be deleted now."""
        remaining = self._left[claim] - 1
        if remaining:
            self._left[claim] = remaining
            return None
        del self._left[claim]
        if claim in self._kept:
            self._kept.remove(claim)
            return None
        return claim


class Claiming:
    """The way of work from a queue into the inbox, by every kind of claim, one claim at a time. Claimed attempts take
    their slots at once."""

    def __init__(
        self,
        claims: Claims,
        open_claims: OpenClaims,
        slots: Slots,
        room: ExecutorRoom,
        batches: Batches,
        inbox: Inbox,
        parked: ParkedQueues,
        permits: Permits,
        publisher: Publisher,
        metrics: Metrics,
    ) -> None:
        self.claims = claims
        self.open_claims = open_claims
        self.permits = permits
        self._inbox = inbox
        self._slots = slots
        self._room = room
        self._batches = batches
        self._parked = parked
        self._publisher = publisher
        self._waits = metrics.start_seconds.labels

    async def claim(self, queue: str, ids: Sequence[UUID]) -> int:
        """Accept as many of these executions as there are free slots and room in batches, and return their number. The
        rest goes back to its route."""
        accepted = 0
        async with self.permits.turn:  # two routes must not fill the same slots
            await self.permits.make_room(len(ids))
            async for claimed in self.claims.claim(queue, ids):
                self.accept(queue, claimed)
                self.permits.lacked(queue, len(claimed.attempts))
                accepted += len(claimed.attempts)
        return accepted

    async def claim_parked(self, queue: str) -> bool:
        """Accept as much parked work of this queue as there is room for. Return whether some of it was for this
        worker."""
        async with self.permits.turn:
            waits = await self._claim_parked(queue)
            if waits and self._slots.free > self._slots.unpromised:
                await self.permits.make_room(self._slots.free)
                waits = await self._claim_parked(queue)
        return waits

    async def _claim_parked(self, queue: str) -> bool:
        waits = False
        async for claimed in self.claims.claim_parked(queue):
            self._accept_all(queue, claimed)
            waits = claimed.parked
        return waits

    def accept(self, queue: str, claimed: Claimed) -> None:
        """Take the slots of what was claimed from a queue, and pass it to the inbox. No other task runs between the
        claim and this."""
        self._accept_all(queue, claimed)
        if self._slots.can_fill():
            self._parked.has_room()
        if claimed.parked:
            self._parked.parked(queue)  # a slot may have become free while the claim was under way
            self._publisher.parked(queue)

    def accept_assigned(self, queue: str, claimed: Claimed, room: int) -> list[OwnedAttempt]:
        """Take what a submit has assigned to this worker, and pass on as many attempts as there is room for. Return the
        other attempts, which the caller hands back."""
        self._hold(claimed)
        self._begin(queue, claimed.attempts[:room])
        for attempt in claimed.attempts[room:]:
            self._batches.leave(attempt)
        return claimed.attempts[room:]

    def _accept_all(self, queue: str, claimed: Claimed) -> None:
        self._hold(claimed)
        self._begin(queue, claimed.attempts)
        self._publisher.publish(claimed.staged)

    def _hold(self, claimed: Claimed) -> None:
        for attempt in claimed.attempts:
            self.open_claims.open(attempt.claim)
            batch = self._batches.join(attempt)
            self._slots.take(attempt.event.execution_id, attempt.event.attempt, batch)

    def _begin(self, queue: str, attempts: Sequence[OwnedAttempt]) -> None:
        waits = self._waits(queue.removeprefix(WORK))
        for attempt in attempts:
            waits.observe(attempt.waited)
            if attempt.version.batch is None:  # a batch takes one place for all of its attempts
                self._room.give(executor_name(attempt.version.action, attempt.of_route))
        self._inbox.put(attempts)
