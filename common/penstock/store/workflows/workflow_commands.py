"""The commands of people to executions, stored with their author and reason."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from penstock.store.session.database import Transaction

COMMAND = "select command_workflow($1, $2, $3, $4, $5, $6) as messages"


async def command(
    tx: Transaction, id: UUID, kind: str, task: str | None, value: str | None, by: str, reason: str | None
) -> bool:
    """Tell a running workflow to `pause`, `resume`, `skip` a task or `set_result` of one (JSON). False if it does not run."""
    [row] = await tx.stage(COMMAND, id, kind, task, value, by, reason)
    return bool(row["messages"])


RERUN = "select messages, known from rerun_execution($1, $2, $3, $4, $5, $6, $7)"


async def rerun(
    tx: Transaction,
    new: UUID,
    old: UUID,
    *,
    origin: str,
    from_task: str | None,
    value: str,
    by: str,
    reason: str | None,
) -> bool:
    """Run `old` once more as `new`; `origin` and `value`, which is kept with the old run, are JSON. False if `old` is
    gone."""
    [row] = await tx.stage(RERUN, new, old, origin, from_task, value, by, reason)
    return bool(row["known"])


ONE_AT_A_TIME = "select pg_advisory_xact_lock(hashtext('penstock.rerun_many'))"
RERUN_BEFORE = """
select distinct execution_id from workflow_command where execution_id = any($1::uuid[]) and kind = 'rerun'
"""


async def rerun_before(tx: Transaction, olds: Sequence[UUID]) -> set[UUID]:
    """Return the executions among `olds` that were run once more already. The caller holds a lock until it commits, so no
    other transaction does this meanwhile."""
    await tx.fetch(ONE_AT_A_TIME)
    return {row["execution_id"] for row in await tx.fetch(RERUN_BEFORE, list(olds))}
