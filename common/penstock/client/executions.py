"""Bulk operations on the executions that match a filter: list, count, cancel and re-run them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Protocol
from uuid import UUID

from penstock.client import commands
from penstock.client.bulk import BulkOutcome, Part
from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.terms.ids import new_id
from penstock.store.executions import execution_list
from penstock.store.executions import executions as store
from penstock.store.executions.execution_list import ExecutionFilter, ListedExecution
from penstock.store.executions.executions import Execution
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction
from penstock.store.workflows import workflow_commands

CANCELLED_AT_ONCE = 500
RERUN_AT_ONCE = 100
"""The number of executions that are re-run in one transaction."""


class Canceller(Protocol):
    """The part of `Client` that these operations use."""

    @property
    def session(self) -> Session: ...

    async def cancel(self, *ids: UUID, reason: str) -> int: ...

    def publish_staged(self, tx: Transaction) -> None: ...


async def page(
    session: Session,
    filters: ExecutionFilter = ExecutionFilter(),
    *,
    before: UUID | None = None,
    limit: int = 50,
) -> list[ListedExecution]:
    """Return the executions that match the filter, newest first. `before` is the id at the end of the previous page."""
    return await execution_list.page(session, filters, before=before, limit=limit)


async def count(session: Session, filters: ExecutionFilter = ExecutionFilter()) -> int:
    """Return the number of executions that match the filter."""
    return await execution_list.count(session, filters)


async def cancel(
    client: Canceller,
    filters: ExecutionFilter,
    *,
    reason: str,
    dry_run: bool = False,
    part: Part | None = None,
) -> int:
    """Ask the unfinished executions that match the filter to end. Return the number asked, or with `dry_run` the
    number that would be.

    A call after an interruption continues with the rest. Executions that start meanwhile are left alone. `part` limits
    the call to a range.
    """
    still_open = replace(filters, ended=False)
    if dry_run:
        return await count(client.session, still_open)
    told_count = 0
    async for rows in _batches(client.session, still_open, CANCELLED_AT_ONCE, part):
        told_count += await client.cancel(*(row.id for row in rows), reason=reason)
    return told_count


async def rerun(
    client: Canceller,
    filters: ExecutionFilter,
    *,
    by: str,
    reason: str | None = None,
    from_failed: bool = False,
    dry_run: bool = False,
    part: Part | None = None,
) -> AsyncIterator[BulkOutcome]:
    """Run the ended executions that match the filter again, each as `Client.rerun` does. Yield an outcome for each,
    also for one that cannot be re-run.

    Executions that were re-run before are left out, so a call after an interruption continues with the rest.
    `from_failed`: workflows keep what succeeded. `part` limits the call to a range.
    """
    async for rows in _batches(client.session, replace(filters, ended=True), RERUN_AT_ONCE, part):

        async def step(tx: Transaction, rows: Sequence[ListedExecution] = rows) -> list[BulkOutcome]:
            olds = [row.id for row in rows]
            reruns = await workflow_commands.rerun_before(tx, olds)
            remaining = [old for old in olds if old not in reruns]
            if dry_run:
                return [BulkOutcome(old, "it can be run once more") for old in remaining]
            done = [
                await _rerun(tx, new_id(), row, from_failed=from_failed, by=by, reason=reason)
                for row in await store.find(tx, remaining)
            ]
            started = sum(outcome.error is None for outcome in done)
            tx.tell(asked=len(remaining), started=started, first=olds[0], last=olds[-1])
            return done

        tx, outcomes = await committed_once(client.session, step)
        client.publish_staged(tx)
        for outcome in outcomes:
            yield outcome


async def _rerun(
    tx: Transaction, new: UUID, old: Execution, *, from_failed: bool, by: str, reason: str | None
) -> BulkOutcome:
    try:
        await commands.rerun(tx, new, old, from_failed=from_failed, from_task=None, by=by, reason=reason)
    except (NotFound, Conflict, InvalidInput) as error:
        return BulkOutcome(old.id, error=error)
    return BulkOutcome(old.id, f"execution {new}")


async def _batches(
    session: Session, filters: ExecutionFilter, size: int, part: Part | None = None
) -> AsyncIterator[list[ListedExecution]]:
    """Yield batches, newest first. So executions that are created meanwhile, such as re-runs, are not among them."""
    part = part or Part()
    part.next, read_count = part.before, 0
    while part.limit is None or read_count < part.limit:
        rows = await page(session, filters, before=part.next, limit=size)
        if not rows:
            part.next = None
            return
        yield rows
        read_count += len(rows)
        part.next = rows[-1].id
