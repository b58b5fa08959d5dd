"""Claiming: what a worker takes from an envelope, with all that it needs to run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from penstock.ids import new_id
from penstock.run.task_executors import RunnableAction, TaskReadyEvent
from penstock.service.heartbeat import Identity
from penstock.store import attempts
from penstock.store.attempts import ClaimAnswer, ClaimedAttempt
from penstock.store.database import Session, retried
from penstock.store.staged_messages import StagedMessage
from penstock_worker.action_versions import ActionVersion, ActionVersions
from penstock_worker.secret_masking import worth_hiding


@dataclass(slots=True)
class OwnedAttempt:
    """An attempt that this worker has claimed, ready to run. `failures`: attempts of its execution that failed before."""

    event: TaskReadyEvent
    version: ActionVersion
    failures: int
    claim: UUID
    params: Mapping[str, Any]
    carry: Mapping[str, Any]
    context: Mapping[str, Any]
    waited: float
    """Seconds since it was ready, on the database's clock."""
    secrets: tuple[str, ...] = ()
    """Texts that its log and its error must not show."""


class Claims:
    """Claims for one worker."""

    def __init__(
        self, session: Session, worker: Identity, actions: Callable[[str], RunnableAction | None]
    ) -> None:
        self._session = session
        self._worker = worker.id
        self._versions = ActionVersions(session, worker, actions)

    async def claim(
        self, queue: str, ids: Sequence[UUID], most: int
    ) -> tuple[list[OwnedAttempt], list[StagedMessage]]:
        """Claim at most `most` of `ids`. Returns the attempts, and the messages that were staged for others to take the rest.

        Only what the worker is known to have the code for is claimed. Where some are of versions that it has not met, the
        database names these instead of handing the rest on; they are looked up, and what is left is claimed again."""
        owned: list[OwnedAttempt] = []
        staged: list[StagedMessage] = []
        left = list(ids)
        while left:
            claim = new_id()
            answer = await self._claim_known(claim, queue, left, most - len(owned))
            staged += answer.staged
            owned += await self._ready_to_run(claim, answer.attempts)
            if not answer.unknown_definitions:
                break
            await self._versions.look_up(answer.unknown_definitions)
            claimed = {attempt.execution_id for attempt in answer.attempts}
            left = [id for id in left if id not in claimed]
        return owned, staged

    async def _claim_known(self, claim: UUID, queue: str, ids: Sequence[UUID], most: int) -> ClaimAnswer:
        return await retried(
            lambda: attempts.claim(
                self._session,
                worker=self._worker,
                claim=claim,
                ids=ids,
                most=most,
                queue=queue,
                known=self._versions.known,
                lacking=self._versions.lacking,
            )
        )

    async def _ready_to_run(self, claim: UUID, claimed: Sequence[ClaimedAttempt]) -> list[OwnedAttempt]:
        again = [attempt.execution_id for attempt in claimed if attempt.attempt > 1]
        carried = await attempts.carried_over(self._session, again) if again else {}
        return [self._owned(claim, attempt, carried.get(attempt.execution_id) or {}) for attempt in claimed]

    def _owned(self, claim: UUID, attempt: ClaimedAttempt, carry: Mapping[str, Any]) -> OwnedAttempt:
        version = self._versions[attempt.definition_id]
        options: Mapping[str, Any] = {}
        if attempt.options is not None:
            options = orjson.loads(attempt.options)
            version = version.with_options(options)
        params = orjson.loads(attempt.params)
        return OwnedAttempt(
            event=TaskReadyEvent(
                execution_id=attempt.execution_id,
                attempt=attempt.attempt,
                max_attempts=version.retry.max_attempts,
                namespace=attempt.namespace,
                action=version.action.ref,
            ),
            version=version,
            failures=attempt.failures,
            claim=claim,
            params=params,
            carry=carry,
            context=options.get("context") or {},
            waited=attempt.waited,
            secrets=worth_hiding(version.parameters.secrets_of(params)),
        )
