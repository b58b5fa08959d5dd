"""The ends of attempts, and the claim of executions that waited for their slots, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from penstock.store.executions.attempts import (
    FINISH_PARAMETERS,
    AttemptEnd,
    ClaimAnswer,
    Claimant,
    claim_answer,
    finish_arguments,
)
from penstock.store.session.database import Session
from penstock.store.session.staged_messages import StagedMessage, staged_in

FINISH_AND_CLAIM = f"""
select moved, messages, queue, claimed, parked
from finish_and_claim({FINISH_PARAMETERS}, $12, $13::text[], $14::integer[], $15::integer[], $16::executor_room[])
"""


@dataclass(slots=True)
class LetIn:
    """The result of `finish_and_claim`. `moved`: as in `attempts.finish`. `staged`: messages to publish. Executions
    on `queue` (None: on none) were claimed, as `claimed` says."""

    moved: set[UUID]
    staged: list[StagedMessage]
    queue: str | None
    claimed: ClaimAnswer


async def finish_and_claim(
    session: Session,
    claimant: Claimant,
    queues: Sequence[str],
    ends: Sequence[AttemptEnd],
    claims: Sequence[UUID],
) -> LetIn:
    """Record these ends (see `attempts.finish`), and claim executions that the ends admit on one of `queues`: at most
    as many as end. The call is the whole transaction, in one round trip."""
    [row] = await session.fetch(
        FINISH_AND_CLAIM,
        *finish_arguments(claimant.worker, ends, claims),
        claimant.claim,
        queues,
        claimant.known,
        claimant.lacking,
        claimant.limited,
    )
    claimed = claim_answer(row["claimed"], [], (), row["parked"])
    return LetIn(set(row["moved"]), staged_in(row["messages"]), row["queue"], claimed)
