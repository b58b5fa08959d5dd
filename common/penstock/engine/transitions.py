"""The transitions of an ended task: its published values, the transitions that it takes, and how its end counts for
its successors."""

from __future__ import annotations

from heapq import heappush
from typing import Any

from penstock.engine.decision import Published
from penstock.engine.draft import Arrival, Draft
from penstock.engine.facts import Asking, TaskResult
from penstock.engine.plan import RENDER_ERRORS, CompiledTask, CompiledTransition
from penstock.engine.scope import end_names, readable
from penstock.engine.state import TaskState, outcome_of
from penstock.engine.task_errors import describe_error
from penstock.errors import ExpressionError
from penstock.language.moves import COMPLETED, FAILED, SKIPPED
from penstock.language.workflows.task_trigger_rules import FAILURE, SKIP, SUCCESS

MAX_FAULTS = 10
MAX_FAILURES = 10
"""The number of failed tasks that a workflow keeps in the order in which they failed."""


def take_transitions(draft: Draft, compiled: CompiledTask, task_state: TaskState) -> Asking[None]:
    """Publish a task's values, take its transitions, and add its end to the arrivals at its successors
    (`draft.arriving`)."""
    node = compiled.node
    taken_targets: set[int] = set()
    rescued: set[int] = set()
    if task_state.status != SKIPPED and ("publish" in compiled.render or compiled.transitions):
        names = yield from draft.scope.namespace(compiled.reads["settle"], node.index)
        if task_state.status == COMPLETED and "publish" in compiled.render:
            _publish(draft, compiled, task_state, names | _end_names(draft, node.index, task_state))
        names |= _end_names(draft, node.index, task_state)
        for number, transition in enumerate(compiled.transitions):
            if _is_taken(draft, compiled, number, transition, names):
                taken_targets.update(transition.do)
                if task_state.status != COMPLETED and not _taken_after_success_too(transition, names):
                    rescued.update(transition.do)
                    task_state.handled |= not transition.do
    task_state.routes = sorted(rescued)
    outcome = outcome_of(task_state.status, node.step.allow_failure)
    if outcome == FAILURE and not task_state.handled:
        draft.state.unhandled += 1
        draft.state.failures = [*draft.state.failures, node.index][:MAX_FAILURES]
    elif outcome == SUCCESS and task_state.status != COMPLETED:
        task_state.handled = True
    if draft.plan.workflow.fail_fast:
        draft.doubtful.add(node.index)
        if not task_state.runs:
            draft.doubtful.update(node.sources)  # this task handles no failure of theirs any more
    for target in node.targets:
        if node.routes and target in node.routes:
            led = SUCCESS if target in taken_targets else SKIP
            heappush(draft.arriving, Arrival(target, node.index, led, target in rescued))
        else:
            heappush(draft.arriving, Arrival(target, node.index, outcome, False))


def _end_names(draft: Draft, task: int, task_state: TaskState) -> dict[str, Any]:
    end = readable(draft.plan.graph[task].name, draft.scope.result_of(task, task_state))
    return end_names(task_state.status, end)


def _publish(draft: Draft, compiled: CompiledTask, task_state: TaskState, names: dict[str, Any]) -> None:
    """Publish the values of a task. If that fails, the task fails, whatever the outcome of its execution."""
    try:
        _publish_values(
            draft,
            compiled.node.index,
            compiled.render["publish"](names),
            f"task `{compiled.node.name}`, publish",
        )
    except RENDER_ERRORS as error:
        task_state.status, task_state.error = FAILED, describe_error(error)


def _is_taken(
    draft: Draft, compiled: CompiledTask, number: int, transition: CompiledTransition, names: dict[str, Any]
) -> bool:
    """Return whether a transition is taken. A transition with a condition that raises an error is not taken, and fails the
    workflow at its end."""
    place = f"task `{compiled.node.name}`, next.{number}"
    try:
        try:
            holds = transition.when(names)
        except ExpressionError as error:
            raise ExpressionError(f"{place}.when: {error.message}", hint=error.hint) from None
        if holds and transition.publish is not None:
            _publish_values(draft, compiled.node.index, transition.publish(names), f"{place}.publish")
        return holds
    except RENDER_ERRORS as error:
        draft.state.faults = [*draft.state.faults, describe_error(error)][:MAX_FAULTS]
        return False


def _taken_after_success_too(transition: CompiledTransition, names: dict[str, Any]) -> bool:
    """Return whether a transition that is taken after a failure would also be taken after a success. If not, it is a
    failure route, and it handles the failure."""
    if transition.always:
        return True
    try:
        return transition.when(names | end_names(COMPLETED, TaskResult(names["result"])))
    except ExpressionError:
        return False


def _publish_values(draft: Draft, writer: int, values: Any, place: str) -> None:
    if not isinstance(values, dict):
        raise ExpressionError(
            f"{place}: its value has the type {type(values).__name__}, and must be a mapping of names to values",
            hint="Write `publish: {name: value}`, or an expression whose value is a mapping.",
        )
    draft.decision.published.extend(Published(writer, str(name), value) for name, value in values.items())
