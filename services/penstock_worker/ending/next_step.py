"""The end of attempts and what follows it, in one transaction: the worker that commits a step takes the next one with it. An
executor does the same with the message that tells of the ends, wherever this does not. That is where more ended than a few,
where a lock is taken, or where it is more than a few starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

import structlog

from penstock.advance import turn_spans
from penstock.advance.ends import NotAtOnce, follow_ends_at_once
from penstock.advance.remembered import RememberedWorkflows
from penstock.store.executions import attempts, letting_in, plain_executions
from penstock.store.executions.attempts import AttemptEnd, ClaimAnswer, Claimant
from penstock.store.session.database import Session, Transaction, is_transient
from penstock.store.session.staged_messages import StagedMessage
from penstock.store.workflows import steps

log = structlog.get_logger()

MOST_ENDS = 32
"""What ends in one transaction and is followed there. More is a load that executors share, each with a batch of its own."""


class NextClaim(Protocol):
    """Claims of the work that a transaction stages which ends attempts."""

    @property
    def remembered(self) -> RememberedWorkflows: ...

    def asked(self, ends: int) -> tuple[Claimant, list[str]]:
        """Return the claimant, and the queues that it claims of, where so many attempts end."""

    @property
    def let_in(self) -> bool:
        """Return whether the last ends let in executions that had waited for their slots: then these may, too."""

    def got(self, queue: str | None, claimed: ClaimAnswer) -> None:
        """This was claimed of that queue; of none, nothing was."""

    async def take(self, tx: Transaction, ends: int) -> None:
        """Claim of what this transaction has staged, which ends so many attempts."""


@dataclass(slots=True)
class Finished:
    """The outcome of an end. `moved`: the executions with a stored end of their attempt; the other attempts are not the
    worker's any more. `went_on`: what follows is done, too."""

    moved: set[UUID]
    staged: list[StagedMessage]
    went_on: bool = False


async def finish(
    session: Session,
    worker: UUID,
    ends: Sequence[AttemptEnd],
    claims: Sequence[UUID],
    go_on: NextClaim | None,
) -> Finished:
    """Record these ends, and delete `claims`, which have no attempt left. `go_on`: also advance the workflows of
    these tasks, if that is possible at once, and claim the tasks that follow or the admitted executions."""
    if go_on is not None:
        try:
            finished = await _going_on(session, worker, ends, claims, go_on)
            if finished is not None:
                return finished
        except Exception as error:
            if is_transient(error):
                raise
            # Whichever of the two it was: the ends are written down without what follows, or are refused by themselves.
            log.warning("next_step.left_to_executors", reason=str(error))
    async with session.transaction() as tx:
        if plain_executions.all_completed(ends):
            moved = await plain_executions.finish(tx, worker, ends, claims)
        else:
            moved = await attempts.finish(tx, worker, ends, claims, alone=True)
    return Finished(moved, tx.staged)


async def _going_on(
    session: Session, worker: UUID, ends: Sequence[AttemptEnd], claims: Sequence[UUID], go_on: NextClaim
) -> Finished | None:
    """None: there is nothing to go on with, or not at once."""
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
    """Finish attempts, and begin in their place the executions that waited for their slots."""
    finished = await letting_in.finish_and_claim(session, *go_on.asked(len(ends)), ends, claims)
    go_on.got(finished.queue, finished.claimed)
    return Finished(finished.moved, finished.staged, went_on=finished.queue is not None)


async def _from_memory(
    session: Session, ends: Sequence[AttemptEnd], claims: Sequence[UUID], go_on: NextClaim
) -> Finished | None:
    """All of it in one round trip, where the worker remembers the workflows; None if it was not to be."""
    decided = await go_on.remembered.decide(session, ends)
    if decided is None:
        return None
    step, turns = decided
    claimant, queues = go_on.asked(len(ends))
    answer = await steps.take_steps(session, step, ends, claims, claimant, queues)
    if not answer.taken:
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
