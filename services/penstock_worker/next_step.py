"""The end of attempts and what follows it, in one transaction: whoever commits a step takes the next one with it.

An executor does the same with the message that tells of the ends, wherever this does not: where more ended than a few, where a
lock is taken, where it is more than a few starts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog

from penstock.advance.ends import NotAtOnce, follow_ends_at_once
from penstock.store import attempts
from penstock.store.attempts import AttemptEnd
from penstock.store.database import Session, Transaction, is_transient
from penstock.store.staged_messages import StagedMessage

log = structlog.get_logger()

Take = Callable[[Transaction, int], Awaitable[None]]
"""Claims, in a transaction that ends so many attempts, of the work that it has staged."""

MOST_ENDS = 32
"""What ends in one transaction and is followed there. More is a load that executors share, each with a batch of its own."""


@dataclass(slots=True)
class Finished:
    """`moved`: the executions whose attempts were written down. The others' are not the worker's any more. `went_on`: what
    follows is done, too."""

    moved: set[UUID]
    staged: list[StagedMessage]
    went_on: bool = False


async def finish(
    session: Session, worker: UUID, ends: Sequence[AttemptEnd], claims: Sequence[UUID], go_on: Take | None
) -> Finished:
    """Write down these ends, and forget `claims`, which have no attempt left. `go_on`: advance the workflows whose tasks they
    are, too, if that is possible at once, and take what follows there."""
    if go_on is not None and len(ends) <= MOST_ENDS:
        try:
            async with session.transaction() as tx:
                moved = await attempts.finish(tx, worker, ends, claims)
                if went_on := await follow_ends_at_once(tx, moved):
                    await go_on(tx, len(moved))
            return Finished(moved, tx.staged, went_on)
        except NotAtOnce:
            pass
        except Exception as error:
            if is_transient(error):
                raise
            # Whichever of the two it was: the ends are written down without what follows, or are refused by themselves.
            log.warning("next_step.left_to_executors", error=str(error))
    async with session.transaction() as tx:
        moved = await attempts.finish(tx, worker, ends, claims, alone=True)
    return Finished(moved, tx.staged)
