"""The end of attempts and the work that follows it, in one transaction. The worker that commits a step claims the next
one with it.

If that is not possible, an executor does the same on the message about the ends. This is so for more than a few ends
or starts, or if a lock is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

import structlog

from penstock.advance import turn_spans
from penstock.advance.ends import NotAtOnce, follow_ends_at_once
from penstock.advance.remembered import RememberedWorkflows
from penstock.attempts.new_effect import NewEffect
from penstock.language.moves import WAITING
from penstock.store.executions import attempts, letting_in, plain_executions
from penstock.store.executions.attempts import AttemptEnd, ClaimAnswer, Claimant
from penstock.store.session.database import Session, Transaction, is_transient
from penstock.store.session.staged_messages import StagedMessage
from penstock.store.workflows import steps
from penstock_worker.outgoing.writer import store_with_ends

log = structlog.get_logger()

MOST_ENDS = 32
"""The maximum number of ends in one transaction with their following work. Larger batches are left to the executors,
which share the load."""


class NextClaim(Protocol):
    """The claims of work that a transaction stages when it ends attempts."""

    @property
    def remembered(self) -> RememberedWorkflows: ...

    def asked(self, ends: int) -> tuple[Claimant, list[str]]:
        """Return the claimant for the slots of `ends` attempts, and the queues from which it claims."""

    @property
    def let_in(self) -> bool:
        """Return whether the last ends admitted executions that had waited for slots. If so, the next ends may admit
        some too."""

    def got(self, queue: str | None, claimed: ClaimAnswer) -> None:
        """Note what was claimed from a queue. `queue` is None if nothing was."""

    async def take(self, tx: Transaction, ends: int) -> None:
        """Claim work that this transaction, which ends `ends` attempts, has staged."""


@dataclass(slots=True)
class Finished:
    """The outcome of ending attempts. `moved` are the executions with a stored end; the other attempts no longer
    belong to the worker. `went_on`: the following work is done too."""

    moved: set[UUID]
    staged: list[StagedMessage]
    went_on: bool = False


async def finish(
    session: Session,
    worker: UUID,
    ends: Sequence[AttemptEnd],
    claims: Sequence[UUID],
    go_on: NextClaim | None,
    effects: Sequence[NewEffect] = (),
) -> Finished:
    """Record the ends, and delete the `claims` that have no attempts left. Store the transactional `effects` of those
    attempts that the worker still owned. Raises Conflict or Stale for an effect that cannot be stored.

    `go_on`: if possible, also advance the workflows of these tasks, and claim the tasks that follow or the admitted
    executions.
    """
    costs = any(end.ending.costs for end in ends)
    if go_on is not None and not costs:
        try:
            finished = await _going_on(session, worker, ends, claims, go_on)
            if finished is not None:
                return finished
        except Exception as error:
            if is_transient(error):
                raise
            # The following work may have failed, or the ends may have been refused. So write the ends alone, which
            # shows which one it was.
            log.warning("next_step.left_to_executors", reason=str(error))
    async with session.transaction() as tx:
        if costs:
            await attempts.settle_costs(tx, worker, ends)
        if effects:
            moved = await attempts.finish(tx, worker, ends, claims)
            await store_with_ends(
                tx, effects, moved, {e.execution_id for e in ends if e.ending.status == WAITING}
            )
        elif costs:
            moved = await attempts.finish(tx, worker, ends, claims)
        elif plain_executions.all_completed(ends):
            moved = await plain_executions.finish(tx, worker, ends, claims)
        else:
            moved = await attempts.finish(tx, worker, ends, claims, alone=True)
    return Finished(moved, tx.staged)


async def _going_on(
    session: Session, worker: UUID, ends: Sequence[AttemptEnd], claims: Sequence[UUID], go_on: NextClaim
) -> Finished | None:
    """Finish the attempts with the work that follows. Return None if no work follows, or not in this transaction."""
    if len(ends) <= MOST_ENDS and any(end.workflow is not None for end in ends):
        try:
            return await _from_memory(session, ends, claims, go_on) or await _at_once(
                session, worker, ends, claims, go_on
            )
        except NotAtOnce:
            pass
    return await _letting_in(session, ends, claims, go_on) if go_on.let_in else None


async def _letting_in(
    session: Session, ends: Sequence[AttemptEnd], claims: Sequence[UUID], go_on: NextClaim
) -> Finished:
    """Finish the attempts, and claim executions that waited for their slots."""
    finished = await letting_in.finish_and_claim(session, *go_on.asked(len(ends)), ends, claims)
    go_on.got(finished.queue, finished.claimed)
    return Finished(finished.moved, finished.staged, went_on=finished.queue is not None)


async def _from_memory(
    session: Session, ends: Sequence[AttemptEnd], claims: Sequence[UUID], go_on: NextClaim
) -> Finished | None:
    """Finish the attempts in one round trip, with the workflows that the worker has cached. Return None if a workflow
    is not cached or has changed."""
    decided = await go_on.remembered.decide(session, ends)
    if decided is None:
        return None
    step, turns = decided
    claimant, queues = go_on.asked(len(ends))
    answer = await steps.take_steps(session, step, ends, claims, claimant, queues)
    if not answer.is_committed:
        return None
    for workflow in (workflow for workflow, turn in turns if turn.final is None):
        go_on.remembered.keep(workflow, step.versions[workflow.id][0] + 1)
    go_on.got(answer.queue, answer.claimed)
    turn_spans.send(turns)
    return Finished({end.execution_id for end in ends}, answer.staged, went_on=True)


async def _at_once(
    session: Session, worker: UUID, ends: Sequence[AttemptEnd], claims: Sequence[UUID], go_on: NextClaim
) -> Finished:
    async with session.transaction() as tx:
        opened = await steps.finish_and_open(tx, worker, ends, claims)
        committed = await follow_ends_at_once(tx, opened)
        if committed is not None:
            await go_on.take(tx, len(opened.moved))
    for workflow, version in committed or ():
        go_on.remembered.keep(workflow, version)
    return Finished(opened.moved, tx.staged, committed is not None)
