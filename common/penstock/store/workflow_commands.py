"""What people tell executions, kept with who and why."""

from __future__ import annotations

from uuid import UUID

from penstock.store.database import Transaction

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
