"""The writing of decisions: states, variables, children and ends, for all workflows together in set-based statements."""

from __future__ import annotations

from uuid import UUID

from penstock.advance import turn_spans
from penstock.advance.start_children import ChildStart, are_placed, start_children
from penstock.advance.turn_spans import Turns
from penstock.store.executions import executions
from penstock.store.session.database import Transaction
from penstock.store.workflows import children, facts, kept_results, pending_commands, state
from penstock.store.workflows.state import EndedWorkflow, NewState


async def write(tx: Transaction, turns: Turns) -> None:
    """Write the decisions. Call it in the transaction that holds the locks."""
    starts_before, starts_after = _starts(turns)
    new = new_state(turns)
    together = (
        bool(starts_after) and all(turn.only_starts for _, turn in turns) and are_placed(tx, starts_after)
    )
    if not together:
        await state.write(tx, new)
    await _store_items(tx, turns)
    await _forget_kept(tx, turns)
    await _hold_or_release(tx, turns)
    if starts_before:  # `start_children` locks keys of limits, and rows are locked before keys
        await children.lock(tx, [id for ids in await _find_cancelled(tx, turns) for id in ids])
        await start_children(tx, starts_before)
    not_by_hand, by_hand = await _find_cancelled(tx, turns)
    # Two calls cancel these executions. Lock all rows first, in the order of ids in which every transaction locks them.
    if not_by_hand and by_hand:
        await children.lock(tx, [*not_by_hand, *by_hand])
    if not_by_hand:
        await executions.cancel(tx, not_by_hand, "its workflow does not need it any more")
    if by_hand:
        await executions.cancel(tx, by_hand, "the end of its workflow was requested again", by_hand=True)
    await start_children(tx, starts_after, new if together else None)
    await _finish(tx, turns)
    followed = [(command.id, turn.refused.get(command.id)) for _, turn in turns for command in turn.commands]
    if followed:
        await pending_commands.mark_followed(tx, followed)
    more_due = [workflow.id for workflow, turn in turns if turn.more_due]
    if more_due:
        await state.advance_soon(tx, more_due)
    turn_spans.send(turns)


def _starts(turns: Turns) -> tuple[list[ChildStart], list[ChildStart]]:
    """Return the starts before and after the cancellations."""
    starts_before: list[ChildStart] = []
    starts_after: list[ChildStart] = []
    for workflow, turn in turns:
        first, then = turn.starts
        starts_before += [ChildStart.of(workflow, start) for start in first]
        starts_after += [ChildStart.of(workflow, start) for start in then]
    return starts_before, starts_after


def new_state(turns: Turns) -> NewState:
    """Return the new state of the workflows themselves."""
    return NewState(
        {workflow.id: turn.state for workflow, turn in turns},
        {(workflow.id, task): state for workflow, turn in turns for task, state in turn.tasks.items()},
        {
            (workflow.id, writer, name): value
            for workflow, turn in turns
            for (writer, name), value in turn.published.items()
        },
    )


async def _store_items(tx: Transaction, turns: Turns) -> None:
    new = [
        (workflow.id, task, items)
        for workflow, turn in turns
        for decision in turn.decisions
        for task, items in decision.store_items.items()
    ]
    if new:
        await facts.store_items(tx, new)


async def _forget_kept(tx: Transaction, turns: Turns) -> None:
    forgotten = [
        (workflow.id, task) for workflow, turn in turns for d in turn.decisions for task in d.forget_kept
    ]
    if forgotten:
        await kept_results.forget(tx, forgotten)


async def _hold_or_release(tx: Transaction, turns: Turns) -> None:
    """Hold the tasks of paused workflows that were requested already, and release those of resumed workflows."""
    paused = [workflow.id for workflow, turn in turns if turn.paused is True]
    if paused:
        await children.hold(tx, paused, "its workflow was paused")
    resumed = [workflow.id for workflow, turn in turns if turn.paused is False]
    if resumed:
        await children.release(tx, resumed, "its workflow was resumed")


async def _find_cancelled(tx: Transaction, turns: Turns) -> tuple[list[UUID], list[UUID]]:
    """Return the open executions that the decisions cancel, and those that they end although they clean up already."""
    ids: tuple[list[UUID], list[UUID]] = [], []
    for workflow, turn in turns:
        for tasks, by_hand in turn.cancels:
            names = None if tasks is None else [workflow.plan.graph[task].name for task in tasks]
            ids[by_hand].extend(await children.find_open(tx, workflow.id, names))
    return ids


def ended_workflows(turns: Turns) -> list[EndedWorkflow]:
    """Return the workflows that end with their turn."""
    return [(workflow.stored, turn.final) for workflow, turn in turns if turn.final is not None]


async def _finish(tx: Transaction, turns: Turns) -> None:
    if ends := ended_workflows(turns):
        await state.finish(tx, ends)
