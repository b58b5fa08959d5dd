"""The decisions on a workflow: from its state and the ends of executions to its new state and the work to do.

The engine applies one end after the other, with all its consequences. So the result does not depend on the batches in
which the ends arrive. The cost depends on the ends and their direct consequences, not on the size of the workflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.engine.decision import ChildEnded, Decision, Published
from penstock.engine.draft import BUDGET, Draft
from penstock.engine.facts import WORKFLOW, Asking, Facts, Needed
from penstock.engine.fan_out import end_item
from penstock.engine.joins import deliver_arrivals, run_or_skip
from penstock.engine.plan import RENDER_ERRORS, Plan
from penstock.engine.prefetch import prefetch
from penstock.engine.starts import end_as_before, start_due
from penstock.engine.state import OPEN, KeptTask, WorkflowState
from penstock.engine.task_end import end_if_all_tasks_ended, end_task, run_exit_task_or_end
from penstock.engine.task_errors import describe_error
from penstock.language.moves import FAILED


def begin(
    plan: Plan,
    facts: Facts,
    system: Mapping[str, Any],
    *,
    kept_tasks: Mapping[int, KeptTask] | None = None,
    budget: int = BUDGET,
) -> Asking[Decision]:
    """Return the first decision of a run, after requests for facts. In a re-run, `kept_tasks` are the tasks of the run
    before that keep their end."""
    draft = Draft(plan, WorkflowState(len(plan.graph)), facts, system, budget)
    facts.tasks = dict.fromkeys(range(len(plan.graph) + 1))
    for task, kept_task in (kept_tasks or {}).items():
        task_state = yield from draft.to_change(task)
        task_state.kept = kept_task
    try:
        if plan.workflow.vars:
            yield from draft.scope.load(Needed(parameters=plan.vars_read.parameters))
            values = plan.vars({"parameters": facts.parameters or {}, "system": system})
            draft.decision.published.extend(
                Published(WORKFLOW, name, value) for name, value in values.items()
            )
    except RENDER_ERRORS as error:
        yield from run_exit_task_or_end(draft, FAILED, describe_error(error))
    else:
        for task, kept_task in (kept_tasks or {}).items():
            if kept_task.by_hand:
                yield from end_as_before(draft, task, kept_task)
        for node in plan.graph.entries:
            task_state = yield from draft.to_change(node.index)
            if task_state.undecided:
                yield from run_or_skip(draft, plan[node.index], task_state)
        yield from deliver_arrivals(draft)
        yield from end_if_all_tasks_ended(draft)
    yield from start_due(draft)
    return draft.decision


def advance(
    plan: Plan,
    state: WorkflowState,
    ends: Iterable[ChildEnded],
    facts: Facts,
    system: Mapping[str, Any],
    *,
    budget: int = BUDGET,
) -> Asking[Decision]:
    """Yield requests for facts, and return the decision that follows from `ends` of executions. Without ends, return
    the decision to start what is due. A known end changes nothing.

    At each yield, add what the yielded `Needed` names to `facts`, then resume. `state` and the task states in `facts`
    are changed in place. Expressions see `system` under that name.
    """
    ends = list(ends)
    draft = Draft(plan, state, facts, system, budget)
    if state.phase == "ended":
        return draft.decision
    yield from prefetch(draft, ends)
    yield from start_due(draft)
    for child in ends:
        yield from _apply(draft, child)
        yield from start_due(draft)
    return draft.decision


def _apply(draft: Draft, child: ChildEnded) -> Asking[None]:
    if child.task not in draft.facts.tasks:
        yield Needed(tasks={child.task})
    task_state = draft.facts.tasks[child.task]
    if task_state is None or task_state.status != OPEN:
        return  # the execution is not a task of this run, or its end is known already
    if task_state.fan is not None:
        yield from end_item(draft, child, task_state)
    elif child.item is None:
        yield from end_task(draft, child.task, child.status)
