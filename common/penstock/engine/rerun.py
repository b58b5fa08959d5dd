"""The tasks of the run before that keep their end in a re-run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.engine.plan import Plan
from penstock.engine.state import KeptTask, TaskState
from penstock.language.moves import COMPLETED, SKIPPED

TaskStates = Mapping[int, TaskState]
"""The task states of the run before, by task index."""


def from_failed(plan: Plan, tasks: TaskStates, completed: Mapping[int, bytes]) -> dict[int, KeptTask]:
    """Return the tasks to keep if the run repeats its failures: the completed and skipped ones, those that may fail,
    and those with a handled failure. `completed` has a bitmap of completed items for each fan-out that runs again."""

    def stands(task: int, task_state: TaskState) -> bool:
        return (
            task_state.status in (COMPLETED, SKIPPED)
            or task_state.handled
            or plan.graph[task].step.allow_failure
        )

    return _kept(plan, tasks, stands, completed)


def from_task(plan: Plan, tasks: TaskStates, task: int) -> dict[int, KeptTask]:
    """Return the tasks to keep if the run repeats `task` and its successors: all other tasks that ended."""
    return _kept(plan, tasks, lambda other, task_state: other != task, {})


def skipped_again(plan: Plan, tasks: TaskStates, kept_tasks: Mapping[int, KeptTask]) -> set[int]:
    """Return the tasks that their rule skipped in the run before, and skips again in a re-run that keeps `kept_tasks`."""
    same = {task for task, kept_task in kept_tasks.items() if kept_task.status is not None}
    again: set[int] = set()
    for node in plan.graph.nodes:
        task_state = tasks.get(node.index)
        if task_state is not None and _skipped_by_rule(task_state) and same.issuperset(node.sources):
            same.add(node.index)
            again.add(node.index)
    return again


def _skipped_by_rule(task_state: TaskState) -> bool:
    """Return whether a task was skipped by its rule: an operator did not skip it, and it did not run."""
    return task_state.status == SKIPPED and not task_state.runs and not task_state.given


def _kept(
    plan: Plan, tasks: TaskStates, stands: Callable[[int, TaskState], bool], completed: Mapping[int, bytes]
) -> dict[int, KeptTask]:
    """Return the tasks to keep, in the workflow's order. A task is kept if `stands` accepts it and all tasks before it
    end as they did. Of other fan-outs, the items in `completed` are kept."""
    kept_tasks: dict[int, KeptTask] = {}
    same: set[int] = set()
    for node in plan.graph.nodes:
        task_state = tasks.get(node.index)
        if task_state is None or not task_state.final or not same.issuperset(node.sources):
            continue
        by_hand = task_state.given and not task_state.runs
        if _skipped_by_rule(task_state):
            same.add(node.index)  # it will be skipped again for the same reason, so its state is not kept
        elif stands(node.index, task_state):
            same.add(node.index)
            total = None if task_state.fan is None else task_state.fan.total
            kept_tasks[node.index] = KeptTask(
                task_state.status,
                total=total,
                given=task_state.given,
                by_hand=by_hand and task_state.status in (COMPLETED, SKIPPED),
                result=task_state.result,
                error=task_state.error,
            )
        elif task_state.fan is not None and node.index in completed:
            kept_tasks[node.index] = KeptTask(None, completed[node.index], digest=task_state.fan.digest)
    return kept_tasks
