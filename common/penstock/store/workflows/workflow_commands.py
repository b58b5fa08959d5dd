"""The commands of users to executions, stored with author and reason."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from penstock.store.session.database import Transaction

COMMAND = "select command_workflow($1, $2, $3, $4, $5, $6) as messages"


async def command(
    tx: Transaction, id: UUID, kind: str, task: str | None, value: str | None, by: str, reason: str | None
) -> bool:
    """Send a running workflow a command: `pause`, `resume`, `skip` of a task, or `set_result` of a task (JSON).
    Return False if the workflow does not run."""
    [row] = await tx.stage(COMMAND, id, kind, task, value, by, reason)
    return bool(row["messages"])


RERUN = "select messages, known from rerun_ended_execution($1, $2, $3, $4, $5, $6, $7, $8, $9)"


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
    params: str | None = None,
    labels: str | None = None,
) -> bool:
    """Start the execution `old` again as `new`. `value` is stored with the old run. `params` replace those of the old run,
    and `labels` are added. These and `origin` are JSON. Return False if `old` is no longer kept."""
    [row] = await tx.stage(RERUN, new, old, origin, from_task, value, by, reason, params, labels)
    return bool(row["known"])


ONE_AT_A_TIME = "select pg_advisory_xact_lock(hashtext('penstock.rerun_many'))"
RERUN_BEFORE = """
select distinct execution_id from workflow_command where execution_id = any($1::uuid[]) and kind = 'rerun'
"""


async def rerun_before(tx: Transaction, olds: Sequence[UUID]) -> set[UUID]:
    """Return the executions among `olds` that were re-run already. The call takes a lock until the transaction ends,
    so that two transactions do not re-run one execution."""
    await tx.fetch(ONE_AT_A_TIME)
    return {row["execution_id"] for row in await tx.fetch(RERUN_BEFORE, list(olds))}
