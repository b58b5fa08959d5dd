"""The turns of workflows that are locked and open: the engine decides, and the decision is written. A batch of ends
advances each workflow once, and a few statements write the decisions of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from penstock.advance import turn_spans
from penstock.advance.open_workflows import OpenWorkflow
from penstock.advance.read_facts import Request, read_facts
from penstock.advance.turn_spans import Turns
from penstock.advance.write_decisions import write
from penstock.engine import Asking, Inbox, Turn, take_turn
from penstock.store.session.database import Transaction


async def advance(tx: Transaction, workflows: Sequence[OpenWorkflow]) -> None:
    """Advance these workflows by their ends and commands. Call it in the transaction that holds their locks."""
    await write(tx, await take_turns(tx, workflows))


async def take_turns(tx: Transaction, workflows: Sequence[OpenWorkflow]) -> Turns:
    """Decide the turns of these workflows, without writing them. All advance in lockstep, so that the facts that they
    need are read together."""
    turn_spans.begin(workflows)
    asking = [(workflow, _turn_of(workflow)) for workflow in workflows]
    turns: dict[UUID, Turn] = {}
    while asking:
        going_on: list[tuple[OpenWorkflow, Asking[Turn]]] = []
        requests: dict[UUID, Request] = {}
        for workflow, turn in asking:
            try:
                requests[workflow.id] = Request(workflow.plan, next(turn), workflow.facts)
            except StopIteration as finished:
                turns[workflow.id] = finished.value
            else:
                going_on.append((workflow, turn))
        if requests:
            await read_facts(tx, requests)
        asking = going_on
    return [(workflow, turns[workflow.id]) for workflow in workflows]


def _turn_of(workflow: OpenWorkflow) -> Asking[Turn]:
    stored = workflow.stored
    inbox = Inbox(workflow.ends, workflow.commands, stored.stops, stored.stop_status, stored.stop_reason)
    return take_turn(
        workflow.plan, stored.state, workflow.facts, workflow.system, inbox, kept_tasks=workflow.kept_tasks
    )
