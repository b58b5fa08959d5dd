"""The end of a task, and of the workflow after its last task."""

from __future__ import annotations

from typing import Any

from penstock.engine.decision import Final
from penstock.engine.draft import Draft
from penstock.engine.facts import EVERYTHING, Asking, Needed
from penstock.engine.joins import deliver_arrivals, may_be_handled
from penstock.engine.plan import RENDER_ERRORS
from penstock.engine.state import DUE, OPEN, TaskState, outcome_of
from penstock.engine.task_errors import describe_error, describe_failed_tasks
from penstock.engine.transitions import take_transitions
from penstock.language.moves import COMPLETED, FAILED
from penstock.language.workflows.task_trigger_rules import FAILURE

SHOWN = 10
"""The number of failed tasks that the error of a workflow names."""


def end_task(draft: Draft, task: int, status: str, error: Any = None) -> Asking[None]:
    """End a task, in whatever state it is: record its status and error, take its transitions, and end the workflow
    after the last task."""
    task_state = yield from draft.to_change(task)
    if task_state.status == OPEN:
        draft.state.open -= 1
    task_state.status = status
    if error is not None:
        task_state.error = error
    if task == draft.plan.exit:
        yield from _exit_task_ended(draft, task_state)
        return
    draft.state.left -= 1
    yield from take_transitions(draft, draft.plan[task], task_state)
    yield from deliver_arrivals(draft)
    yield from end_if_all_tasks_ended(draft)


def end_if_all_tasks_ended(draft: Draft) -> Asking[None]:
    """End the workflow, or start its exit task, if all tasks have ended or a stopping workflow has no open task."""
    state = draft.state
    yield from _stop_after_failure(draft)
    if state.phase == "running" and state.left == 0:
        error = None
        if state.unhandled or state.faults:
            error = yield from _failures(draft)
        yield from run_exit_task_or_end(draft, FAILED if error else COMPLETED, error)
    elif state.phase == "stopping" and state.open == 0:
        assert state.outcome is not None
        status, error = state.outcome
        if status == FAILED:
            error = yield from _failures(draft)
        yield from run_exit_task_or_end(draft, status, error)


def _stop_after_failure(draft: Draft) -> Asking[None]:
    """Let a workflow with `fail_fast` start nothing more, if a failure is left that no task will handle, or a
    transition is in error."""
    doubtful, draft.doubtful = draft.doubtful, set()
    if draft.state.phase != "running" or not draft.plan.workflow.fail_fast:
        return
    if not draft.state.faults:
        yield from draft.scope.load(Needed(tasks=doubtful))
        for task in sorted(doubtful):
            task_state = draft.facts.tasks[task]
            if (
                task_state is not None
                and _unhandled(draft, task, task_state)
                and not (yield from may_be_handled(draft, task, task_state))
            ):
                break
        else:
            return
    draft.state.phase = "stopping"
    draft.set_outcome(FAILED, None)


def run_exit_task_or_end(draft: Draft, status: str, error: Any) -> Asking[None]:
    """Set the workflow's outcome. Then start the exit task if there is one, or else end the workflow."""
    draft.set_outcome(status, error)
    draft.state.due.clear()
    if draft.plan.exit is None:
        yield from end_workflow(draft)
        return
    draft.state.phase = "exiting"
    task_state = yield from draft.to_change(draft.plan.exit)
    task_state.status = DUE
    draft.state.due.append(draft.plan.exit)


def end_workflow(draft: Draft) -> Asking[None]:
    """End the workflow as `state.outcome` says. If its output cannot be rendered, it fails instead."""
    assert draft.state.outcome is not None
    status, error = draft.state.outcome
    output = None
    if status == COMPLETED and draft.plan.workflow.output is not None:
        try:
            names = yield from draft.scope.namespace(draft.plan.output_read, EVERYTHING)
            output = draft.plan.output(names)
        except RENDER_ERRORS as failed:
            status, error = FAILED, describe_error(failed)
    draft.state.phase = "ended"
    draft.state.due.clear()
    draft.decision.final = Final(status, output, error)


def _failures(draft: Draft) -> Asking[dict[str, Any]]:
    """Build the workflow's error. The error names the first `SHOWN` tasks with unhandled failures, in the order of
    time."""
    by_time = draft.state.failures
    yield from draft.scope.load(Needed(failures=bool(draft.state.unhandled), tasks=set(by_time)))
    candidates = {**(draft.facts.failures or {}), **draft.decision.tasks}
    candidates |= {task: state for task in by_time if (state := draft.facts.tasks[task]) is not None}
    unhandled = {
        task: task_state for task, task_state in candidates.items() if _unhandled(draft, task, task_state)
    }
    first_tasks = list(dict.fromkeys([task for task in by_time if task in unhandled] + sorted(unhandled)))[
        :SHOWN
    ]
    yield from draft.scope.load(Needed(results={task for task in first_tasks if not unhandled[task].given}))
    ends = {draft.plan.graph[task].name: draft.scope.result_of(task, unhandled[task]) for task in first_tasks}
    return describe_failed_tasks(ends, draft.state.unhandled, draft.state.faults)


def _unhandled(draft: Draft, task: int, task_state: TaskState) -> bool:
    if not task_state.final or task_state.handled:
        return False
    return outcome_of(task_state.status, draft.plan.graph[task].step.allow_failure) == FAILURE


def _exit_task_ended(draft: Draft, task_state: TaskState) -> Asking[None]:
    """End the workflow after its exit task. A failed exit task turns a completed workflow into a failed one, and
    changes no other outcome."""
    exit = draft.plan.graph.exit
    assert draft.state.outcome is not None
    assert exit is not None
    if (
        outcome_of(task_state.status, exit.step.allow_failure) == FAILURE
        and draft.state.outcome[0] == COMPLETED
    ):
        yield from draft.scope.load(Needed(results=set() if task_state.given else {exit.index}))
        result = draft.scope.result_of(exit.index, task_state)
        draft.state.outcome = (FAILED, describe_failed_tasks({exit.name: result}, 1, []))
    yield from end_workflow(draft)
