"""What people do to a workflow that runs: pause, resume, stop, skip a task or say its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.engine.decision import Decision
from penstock.engine.facts import Facts, Needed
from penstock.engine.fan_out import end_idle
from penstock.engine.plan import Plan
from penstock.engine.scope import Steps
from penstock.engine.starts import start_due
from penstock.engine.state import DUE, OPEN, Head
from penstock.engine.task_end import conclude, end, finish
from penstock.engine.working_state import BUDGET, Run
from penstock.errors import Conflict
from penstock.moves import COMPLETED, SKIPPED


def pause(head: Head) -> bool:
    """Start nothing more; what runs goes on, and what it publishes counts. False if there is nothing to
    pause."""
    if head.paused or head.phase == "ended":
        return False
    head.paused = True
    return True


def resume(
    plan: Plan, head: Head, facts: Facts, system: Mapping[str, Any], *, budget: int = BUDGET
) -> Steps[Decision]:
    """Start what has become due meanwhile."""
    run = Run(plan, head, facts, system, budget)
    head.paused = False
    yield from run.scope.load(Needed(records=set(list(head.due)[:budget])))
    yield from start_due(run)
    return run.decision


def stop(
    plan: Plan, head: Head, facts: Facts, system: Mapping[str, Any], status: str, error: Any
) -> Steps[Decision]:
    """End the workflow as `status` (cancelled, timeout): what is open is cancelled, nothing starts but the
    exit task.

    Stopping it again while the exit task runs cancels that as well."""
    run = Run(plan, head, facts, system)
    if head.phase == "ended":
        return run.decision
    run.decision.cancel_all = True
    due = list(head.due)
    head.due.clear()
    if head.phase == "running":
        head.phase, head.outcome, head.paused = "stopping", (status, error), False
        yield from run.scope.load(Needed(records=set(due)))
        for task in due:
            record = yield from run.record(task)
            yield from end_idle(run, task, record)
        if head.phase == "stopping":
            yield from conclude(run)
        yield from start_due(run)
    elif head.phase == "exiting":
        assert head.outcome is not None
        if head.outcome[0] == COMPLETED:
            head.outcome = (status, error)
        if due:  # it was paused before it began
            yield from finish(run)
    return run.decision


def skip(plan: Plan, head: Head, facts: Facts, system: Mapping[str, Any], task: int) -> Steps[Decision]:
    """Do without a task that has not ended. Raises Conflict if it has, or the workflow has."""
    return (yield from _by_hand(plan, head, facts, system, task, SKIPPED, None))


def set_result(
    plan: Plan, head: Head, facts: Facts, system: Mapping[str, Any], task: int, result: Any
) -> Steps[Decision]:
    """Complete a task that has not ended with this result. Raises Conflict as `skip` does."""
    return (yield from _by_hand(plan, head, facts, system, task, COMPLETED, result))


def _by_hand(
    plan: Plan,
    head: Head,
    facts: Facts,
    system: Mapping[str, Any],
    task: int,
    status: str,
    result: Any,
) -> Steps[Decision]:
    run = Run(plan, head, facts, system)
    name = plan.graph[task].name
    if head.phase == "ended" or (head.phase != "running" and task != plan.exit):
        raise Conflict("the workflow does not run any more", hint="Re-run it from this task instead.")
    if task == plan.exit and head.phase == "running":
        raise Conflict(f"`{name}` has not started", hint="It starts when all other tasks have ended.")
    yield from run.scope.load(Needed(records={task}))
    record = yield from run.record(task)
    if record.final:
        raise Conflict(
            f"`{name}` has ended already, as {record.status}",
            hint="Re-run the workflow from this task instead.",
        )
    if record.status == OPEN:
        run.decision.cancel.add(task)
    if record.status == DUE or record.fan is not None:
        head.due = type(head.due)(due for due in head.due if due != task)
    record.given, record.result, record.error = True, result, None
    yield from end(run, task, status)
    yield from start_due(run)
    return run.decision
