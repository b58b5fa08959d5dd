"""The claims for takes. A gateway claims for a remote worker, as a worker with a session of its own claims for itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from penstock.language.terms.ids import new_id
from penstock.messaging.outbox import Publisher
from penstock.store.executions import attempts, remote_attempts
from penstock.store.executions.attempts import ClaimAnswer
from penstock.store.session.database import Session, retried
from penstock_api.session_pool import SessionPool
from penstock_api.work.definitions import Definitions
from penstock_api.work.held_attempts import HeldAttempts
from penstock_api.work.remote_worker import RemoteWorker
from penstock_api.work.take import Take

Claiming = Callable[[Session, UUID, int], Awaitable[ClaimAnswer]]
"""A function that claims at most so many executions under a claim id."""


class TakeClaims:
    """Claims executions for takes, the calls in which remote workers ask for work."""

    def __init__(
        self, pool: SessionPool, publisher: Publisher, definitions: Definitions, held: HeldAttempts
    ) -> None:
        self._pool = pool
        self._publisher = publisher
        self._definitions = definitions
        self._held = held

    async def claim(self, take: Take, queue: str, ids: Sequence[UUID]) -> bool:
        """Claim as many of `ids` as the take has slots, at most. Return whether executions that its worker cannot run
        were parked. Unclaimed executions go back to their route."""
        remaining, parked = list(ids), False
        while remaining:

            async def claim(
                session: Session, claim: UUID, limit: int, ids: Sequence[UUID] = remaining
            ) -> ClaimAnswer:
                claimant = take.worker.claimant(claim, self._definitions)
                return await remote_attempts.claim(session, claimant, queue, ids, limit)

            answer = await self._claimed(take, claim)
            parked = parked or answer.parked
            claimed = {attempt.execution_id for attempt in answer.attempts}
            turns = len(remaining) - len(claimed) if answer.unknown_definitions else 0
            remaining = [id for id in remaining if id not in claimed][:turns]
        if parked:
            self._publisher.parked(queue)
        return parked

    async def claim_parked(self, take: Take, queue: str) -> bool:
        """Claim parked work for a take. Return whether there may be more of it."""
        while True:

            async def claim(session: Session, claim: UUID, limit: int) -> ClaimAnswer:
                claimant = take.worker.claimant(claim, self._definitions)
                return await remote_attempts.claim_parked(session, claimant, queue, limit)

            answer = await self._claimed(take, claim)
            if not answer.unknown_definitions:
                return answer.parked

    async def hand_back(self, worker: RemoteWorker, queue: str, ids: Sequence[UUID]) -> None:
        """Return executions to their route, since no take waits for them."""
        take = Take(worker, new_id(), 0)
        await self.claim(take, queue, ids)

    async def _claimed(self, take: Take, claim: Claiming) -> ClaimAnswer:
        """Claim for a take, and look up the definitions that this gateway has not read yet."""
        tries = 0

        async def ask() -> ClaimAnswer:
            nonlocal tries
            tries += 1
            async with self._pool.session() as session:
                # An earlier try may have been committed although its answer was lost. What it took has the claim id of
                # the take.
                claimed = (
                    len(await attempts.claimed(session, take.claim)) if tries > 1 else len(take.attempts)
                )
                answer = await claim(session, take.claim, max(0, take.slots - claimed))
                if tries > 1:
                    earlier = {entry.event.execution_id for entry in take.attempts}
                    rows = await attempts.claimed(session, take.claim)
                    answer.attempts = [row for row in rows if row.execution_id not in earlier]
                await self._definitions.look_up(
                    session,
                    [
                        *answer.unknown_definitions,
                        *(attempt.definition_id for attempt in answer.attempts if tries > 1),
                    ],
                )
                return answer

        answer = await retried(ask)
        self._publisher.publish(answer.staged)
        take.attempts += self._held.begin(take.worker, take.claim, answer.attempts)
        return answer
