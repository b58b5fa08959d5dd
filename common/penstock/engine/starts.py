"""The start of tasks that are due."""

from __future__ import annotations

from typing import Any

from penstock.bounds import MESSAGE_CAP
from penstock.engine.draft import Draft
from penstock.engine.facts import Asking
from penstock.engine.fan_out import end_idle_fan_out, fan_out, start_items
from penstock.engine.plan import RENDER_ERRORS, CompiledTask
from penstock.engine.state import DUE, OPEN, FanOut, KeptTask, TaskState
from penstock.engine.task_end import end_task
from penstock.engine.task_errors import describe_error
from penstock.engine.task_input import make_start, render_input
from penstock.language.moves import COMPLETED, FAILED
from penstock.language.workflows.task import FAIL, NOOP
from penstock.run.outcomes import text


def start_due(draft: Draft) -> Asking[None]:
    """Start the due tasks in order, within the budget of this decision. In a stopping workflow none of them starts."""
    while draft.state.due:
        if draft.state.phase == "stopping":
            yield from _drop_due(draft)
            continue
        if draft.state.paused:
            return
        if draft.budget <= 0:
            draft.decision.more_due = True
            return
        task = draft.state.due.popleft()
        task_state = yield from draft.to_change(task)
        if task_state.status == DUE:
            yield from _start(draft, draft.plan[task], task_state)
        elif task_state.fan is not None:
            task_state.fan.queued = False
            yield from start_items(draft, draft.plan[task], task_state)


def _drop_due(draft: Draft) -> Asking[None]:
    """Take the first due task from the queue. A fan-out with no running item ends: no item's end will come to end it."""
    task = draft.state.due.popleft()
    task_state = yield from draft.to_change(task)
    if task_state.fan is not None:
        task_state.fan.queued = False
    yield from end_idle_fan_out(draft, task, task_state)


def end_as_before(draft: Draft, task: int, kept_task: KeptTask) -> Asking[None]:
    """End a kept task of a re-run at once, as it ended in the run before."""
    assert kept_task.status is not None
    task_state = yield from draft.to_change(task)
    task_state.kept = None
    task_state.given, task_state.result = kept_task.given, kept_task.result
    if kept_task.total is not None:
        task_state.fan = FanOut(kept_task.total, begun=kept_task.total, ended=kept_task.total)
    yield from end_task(draft, task, kept_task.status, kept_task.error)


def _start(draft: Draft, compiled: CompiledTask, task_state: TaskState) -> Asking[None]:
    node = compiled.node
    if task_state.kept is not None and task_state.kept.status is not None:
        yield from end_as_before(draft, node.index, task_state.kept)
        return
    try:
        if node.step.with_items is not None:
            yield from fan_out(draft, compiled, task_state)
            return
        names = yield from draft.scope.namespace(compiled.reads["start"], node.index)
        if node.step.kind in (NOOP, FAIL):
            yield from _end_at_once(draft, compiled, task_state, names)
            return
        start = make_start(compiled, None, names)
    except RENDER_ERRORS as error:
        task_state.given = True
        yield from end_task(draft, node.index, FAILED, describe_error(error))
        return
    draft.decision.starts.append(start)
    draft.budget -= 1
    draft.state.open += 1
    task_state.status = OPEN


def _end_at_once(
    draft: Draft, compiled: CompiledTask, task_state: TaskState, names: dict[str, Any]
) -> Asking[None]:
    """End a `noop` or `fail` task, which needs no worker."""
    inputs = render_input(compiled, names)
    task_state.given = True
    draft.plan.check_storable(inputs, f"task `{compiled.node.name}`, input")
    if compiled.node.step.kind == NOOP:
        task_state.result = inputs
        yield from end_task(draft, compiled.node.index, COMPLETED)
    else:
        message = text(str(inputs.get("message", "the workflow says so")), MESSAGE_CAP)
        yield from end_task(draft, compiled.node.index, FAILED, {"type": "Failed", "message": message})
