"""Executions without a decision: submits and ends of a few, which one statement writes if the guard of the SQL
function allows it. Otherwise that function calls the general function, in the same round trip."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from penstock.language.moves import COMPLETED
from penstock.store.executions.attempts import AttemptEnd
from penstock.store.executions.executions import Submission, Submitted, with_watchers
from penstock.store.session.database import Transaction

MOST_ALIKE = 20
"""The largest group for one such submit or end. A larger group goes to the general functions."""

PLACE_ALIKE = """
select messages, stale, existing, conflicts
from place_alike($1::uuid[], $2, $3, $4::text[], $5::text[], $6::smallint, $7)
"""


def are_alike(group: Sequence[Submission]) -> bool:
    """Return True if the group is small, and all its submissions have the same definition, namespace and priority,
    with neither delays nor options nor keys."""
    first = group[0]
    return len(group) <= MOST_ALIKE and all(
        submission.namespace == first.namespace
        and submission.definition == first.definition
        and submission.priority == first.priority
        and not (submission.key or submission.not_before or submission.expires or submission.options)
        for submission in group
    )


async def submit(tx: Transaction, group: Sequence[Submission]) -> Submitted:
    """Create the executions of a group that is alike, and assign them to workers that have permits. Commits by itself
    (`stage_alone`): `tx` must not have run a statement.

    Behind a pooler, the transaction takes several round trips. It could stay open while it holds permits, so none of the
    executions is assigned there.
    """
    first = group[0]
    arguments = (
        [submission.id for submission in group],
        first.namespace,
        first.definition,
        [submission.params for submission in group],
        [submission.origin for submission in group],
        first.priority,
        not tx.session.pooler,
    )
    [row] = await tx.stage_alone(*with_watchers(PLACE_ALIKE, group, *arguments))
    return Submitted(row["stale"], dict(row["existing"]), dict(row["conflicts"]))


FINISH_COMPLETED = (
    "select messages, moved from finish_completed($1, $2::uuid[], $3::integer[], $4::text[], $5::uuid[])"
)


def all_completed(ends: Sequence[AttemptEnd]) -> bool:
    """Return True if `ends` are few and completed, belong to no workflow, and are followed by no action."""
    return len(ends) <= MOST_ALIKE and all(
        end.ending.status == COMPLETED
        and not (end.workflow or end.ending.error or end.ending.reason or end.followed)
        for end in ends
    )


async def finish(
    tx: Transaction, worker: UUID, ends: Sequence[AttemptEnd], claims: Sequence[UUID]
) -> set[UUID]:
    """End attempts that completed, and delete `claims`, which have no other open attempt. `ends` must be in the order of
    execution ids. Return the executions with attempts that the worker still owned. Commits by itself (`stage_alone`):
    `tx` must not have run a statement."""
    [row] = await tx.stage_alone(
        FINISH_COMPLETED,
        worker,
        [end.execution_id for end in ends],
        [end.attempt for end in ends],
        [end.ending.result for end in ends],
        claims,
    )
    return set(row["moved"])
