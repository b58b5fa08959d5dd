"""The reports of the system outside in a simulation, by the id of `later`, or by hand."""

from __future__ import annotations

from uuid import UUID

from penstock.bounds import PAYLOAD_CAP
from penstock.errors import Conflict, NotFound
from penstock.language.policies.policies import RetryPolicy
from penstock.language.terms.options import did_you_mean
from penstock.operate.outside import Report, ending_of_report, no_outside_wait
from penstock.testing.simulated_action import ActionExecution
from penstock.testing.simulated_effects import Effects
from penstock.testing.world import Execution, World


def settle(world: World, name: str, outcome: Report) -> list[Execution]:
    """Settle the waits for an id, and return their executions. Without one, keep the outcome for a day. Raises
    InvalidInput."""
    waiting = _waiting_for(world, name)
    if not waiting:
        ending_of_report(outcome, RetryPolicy(max_attempts=1), 0, PAYLOAD_CAP)
        world.keep_early_outcome(name, outcome)
    for execution in waiting:
        execution.take_report(execution.attempt, outcome)
    return list(waiting)


def settle_by_hand(effects: Effects, id: UUID, outcome: Report) -> Execution:
    """Settle the wait of an execution as an operator does. Raises NotFound, Conflict, InvalidInput."""
    execution = effects.execution(id)
    if not isinstance(execution, ActionExecution):
        raise no_outside_wait(id)
    execution.take_report_by_hand(outcome)
    return execution


def note(world: World, effects: Effects, name: str, report: Report) -> None:
    """Note a progress or a heartbeat of what waits for an id, by the callbacks that its attempts passed on. Raises NotFound
    if nothing waits for the id, and Conflict for an attempt without a callback."""
    waiting = _waiting_for(world, name)
    if not waiting:
        names = [entry.outside_name for entry in world.executions if isinstance(entry, ActionExecution)]
        raise NotFound(
            f"no execution waits for {name!r}", hint=did_you_mean(name, [other for other in names if other])
        )
    for execution in waiting:
        if not effects.has_callback(execution, execution.attempt):
            raise Conflict(
                f"{execution.call.ref} passed on no callback, and an id takes only results and errors",
                hint="Let the action pass on `await current().callback()`: only the callback's address takes a progress or a "
                "heartbeat.",
            )
    for execution in waiting:
        execution.take_report(execution.attempt, report)


def _waiting_for(world: World, name: str) -> list[ActionExecution]:
    return [
        execution
        for execution in world.executions
        if isinstance(execution, ActionExecution) and execution.outside_name == name
    ]
