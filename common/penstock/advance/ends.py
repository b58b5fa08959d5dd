"""The consequences of ended executions: their workflows advance, and their callbacks start."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from penstock.advance.callbacks import start_callbacks
from penstock.advance.open_workflows import OpenWorkflow, open_parents, with_ends
from penstock.advance.remembered_workflows import all_tasks, is_small
from penstock.advance.turn_spans import Turns
from penstock.advance.turns import advance, take_turns
from penstock.advance.write_decisions import write
from penstock.store.durable import steps
from penstock.store.executions import callbacks
from penstock.store.outbox.queues import EXECUTION_COMPLETED
from penstock.store.session.database import Transaction
from penstock.store.workflows.steps import OpenedParents

MOST_STARTS = 32
"""The most starts of a transaction that ends executions. An executor starts larger numbers, so that other ends are
not delayed."""

Committed = list[tuple[OpenWorkflow, int]]
"""Workflows as they are after the commit, each with its version. The worker can remember these workflows."""


class NotAtOnce(Exception):
    """Raised if more than a few starts follow. None of them is written. The caller rolls back and leaves the ends to an
    executor."""


async def follow_ends(tx: Transaction, ids: Sequence[UUID]) -> None:
    """Advance the workflows of these ended executions and start their callbacks, once, whichever process ended them.
    Waits for the locks of the workflows."""
    ended_executions, workflows = await open_parents(tx, ids)
    if workflows:
        await advance(tx, workflows)
    # The other parents are durable functions, or workflows that have ended already.
    advanced = {workflow.id for workflow in workflows}
    parents = {e.id: e.parent for e in ended_executions if e.parent is not None and e.parent not in advanced}
    if parents:
        reason = "it continues: a step that it waited for has ended"
        await steps.wake_parents(tx, sorted(set(parents.values())), list(parents), reason)
    followed = [execution.id for execution in ended_executions if execution.followed]
    if followed:
        await start_callbacks(tx, await callbacks.read_followed(tx, followed))


async def follow_ends_at_once(tx: Transaction, opened: OpenedParents) -> Committed | None:
    """Advance the workflows of these ends, and handle executions without followers, in the transaction that ended the
    executions.

    That transaction holds locks on rows, for which the holder of another lock may wait. So this waits for no further
    lock. If a lock is taken, do nothing and return None: the message that announces the ends stays staged. Raises
    NotAtOnce if more than a few starts follow."""
    if not opened.ended_executions:
        return None
    workflows = await with_ends(tx, opened.ended_executions, opened.workflows)
    for workflow in workflows:
        if workflow.id in opened.tasks and is_small(workflow):
            all_tasks(workflow, opened.tasks[workflow.id][1])
    turns = await take_turns(tx, workflows)
    if not _only_few_starts(turns):
        raise NotAtOnce
    tx.staged = [message for message in tx.staged if message.queue != EXECUTION_COMPLETED]
    await write(tx, turns)
    return [
        (workflow, opened.tasks[workflow.id][0] + 1)
        for workflow, turn in turns
        if workflow.id in opened.tasks and is_small(workflow) and turn.final is None
    ]


def _only_few_starts(turns: Turns) -> bool:
    """Return True if the turns do nothing but start a few executions. Other turns cancel, hold or release rows, which
    another transaction may have locked."""
    starts = sum(len(decision.starts) for _, turn in turns for decision in turn.decisions)
    return starts <= MOST_STARTS and all(turn.only_starts for _, turn in turns)
