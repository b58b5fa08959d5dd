"""The commands of operators to a running workflow: pause, resume, stop, skip a task, set its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.engine.decision import Decision
from penstock.engine.draft import BUDGET, Draft
from penstock.engine.facts import Asking, Facts, Needed
from penstock.engine.fan_out import end_idle_fan_out
from penstock.engine.plan import Plan
from penstock.engine.starts import start_due
from penstock.engine.state import OPEN, WorkflowState
from penstock.engine.task_end import end_if_all_tasks_ended, end_task, end_workflow
from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.moves import COMPLETED, SKIPPED
from penstock.language.terms.options import did_you_mean


@dataclass(frozen=True, slots=True)
class Command:
    """A command to a workflow. `kind` is pause, resume, skip or set_result; `task` is a task's name, `value` the
    result to set."""

    id: int
    kind: str
    task: str | None = None
    value: Any = None


def apply_command(
    plan: Plan, state: WorkflowState, facts: Facts, system: Mapping[str, Any], command: Command
) -> Asking[Decision]:
    """Yield requests for facts, and return the decision that follows from a command. Raises NotFound, Conflict or
    InvalidInput if the workflow cannot follow it."""
    if command.kind == "pause":
        pause(state)
        return Decision(state)
    if command.kind == "resume":
        return (yield from resume(plan, state, facts, system))
    if command.task is None or command.task not in plan.graph.index:
        raise NotFound(
            f"{plan.workflow.ref} has no task {command.task!r}",
            hint=did_you_mean(command.task or "", plan.graph.index),
        )
    task = plan.index(command.task)
    if command.kind == "skip":
        return (yield from skip(plan, state, facts, system, task))
    if command.kind == "set_result":
        return (yield from set_result(plan, state, facts, system, task, command.value))
    raise InvalidInput(f"{command.kind!r} is not a command of a workflow")


def pause(state: WorkflowState) -> bool:
    """Pause the workflow: no task starts, open executions go on, and what they publish counts. Return False if it is
    paused or has ended."""
    if state.paused or state.phase == "ended":
        return False
    state.paused = True
    return True


def resume(
    plan: Plan, state: WorkflowState, facts: Facts, system: Mapping[str, Any], *, budget: int = BUDGET
) -> Asking[Decision]:
    """Resume the workflow: start the tasks that became due during the pause."""
    draft = Draft(plan, state, facts, system, budget)
    state.paused = False
    yield from draft.scope.load(Needed(tasks=set(list(state.due)[:budget])))
    yield from start_due(draft)
    return draft.decision


def stop(
    plan: Plan, state: WorkflowState, facts: Facts, system: Mapping[str, Any], status: str, error: Any
) -> Asking[Decision]:
    """End the workflow as `status` (cancelled or timeout): cancel open executions, and start nothing but the exit task.

    A first stop while the exit task runs changes nothing: all other tasks have ended, and the workflow keeps its
    outcome. A second stop also cancels tasks that are cleaning up, and the exit task.
    """
    draft = Draft(plan, state, facts, system)
    state.stops += 1
    if state.phase == "ended":
        return draft.decision
    if state.phase == "exiting" and state.stops == 1:
        state.paused = False
        yield from start_due(draft)
        return draft.decision
    draft.decision.cancel_all = True
    # After the first request, only requests of operators are counted.
    draft.decision.by_hand = state.stops > 1
    due = list(state.due)
    state.due.clear()
    if state.phase == "running":
        state.phase, state.outcome, state.paused = "stopping", (status, error), False
        yield from draft.scope.load(Needed(tasks=set(due)))
        for task in due:
            task_state = yield from draft.to_change(task)
            yield from end_idle_fan_out(draft, task, task_state)
        if state.phase == "stopping":
            yield from end_if_all_tasks_ended(draft)
        yield from start_due(draft)
    elif (
        state.phase == "stopping"
    ):  # after a failure, with `fail_fast`: the pause ends, as in a running workflow
        state.paused = False
    elif state.phase == "exiting":
        assert state.outcome is not None
        if state.outcome[0] == COMPLETED:
            state.outcome = (status, error)
        if due:  # the workflow was paused before its exit task started
            yield from end_workflow(draft)
    return draft.decision


def skip(
    plan: Plan, state: WorkflowState, facts: Facts, system: Mapping[str, Any], task: int
) -> Asking[Decision]:
    """Skip a task that has not ended. Raises Conflict if the task or the workflow has ended."""
    return (yield from _end_by_hand(plan, state, facts, system, task, SKIPPED, None))


def set_result(
    plan: Plan, state: WorkflowState, facts: Facts, system: Mapping[str, Any], task: int, result: Any
) -> Asking[Decision]:
    """Complete a task that has not ended, with `result`. Raises Conflict if the task or the workflow has ended."""
    return (yield from _end_by_hand(plan, state, facts, system, task, COMPLETED, result))


def _end_by_hand(
    plan: Plan,
    state: WorkflowState,
    facts: Facts,
    system: Mapping[str, Any],
    task: int,
    status: str,
    result: Any,
) -> Asking[Decision]:
    draft = Draft(plan, state, facts, system)
    name = plan.graph[task].name
    if state.phase == "ended" or (state.phase != "running" and task != plan.exit):
        raise Conflict(
            "the workflow has ended or is ending", hint="Rerun the workflow from this task instead."
        )
    if task == plan.exit and state.phase == "running":
        raise Conflict(f"`{name}` has not started", hint="This task starts when all other tasks have ended.")
    yield from draft.scope.load(Needed(tasks={task}))
    task_state = yield from draft.to_change(task)
    if task_state.final:
        raise Conflict(
            f"`{name}` has ended already, as {task_state.status}",
            hint="Rerun the workflow from this task instead.",
        )
    if task_state.status == OPEN:
        draft.decision.cancel.add(task)
    if task in state.due:
        state.due.remove(task)
    task_state.given, task_state.result, task_state.error = True, result, None
    yield from end_task(draft, task, status)
    yield from start_due(draft)
    return draft.decision
