"""Fan-out: a task over the items of a list, with one execution for each item and a bound on how many run at a time.

The work for the end of one item does not depend on the number of items.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from penstock.bounds import ITEMS_CAPS, MAX_ITEMS
from penstock.engine.decision import ChildEnded
from penstock.engine.draft import Draft
from penstock.engine.facts import Asking, Needed, TaskResult
from penstock.engine.plan import RENDER_ERRORS, CompiledTask
from penstock.engine.state import OPEN, FanOut, TaskState
from penstock.engine.task_end import end_task
from penstock.engine.task_errors import describe_error, describe_failed_items
from penstock.engine.task_input import make_start
from penstock.errors import ExpressionError
from penstock.language.moves import CANCELLED, COMPLETED, FAILED, SKIPPED


def fan_out(draft: Draft, compiled: CompiledTask, task_state: TaskState) -> Asking[None]:
    """Start a task over its items. Raises ExpressionError if `with_items` does not give a list."""
    task = compiled.node.index
    names = yield from draft.scope.namespace(compiled.reads["fan"], task)
    items = _render_items(compiled, names)
    draft.plan.check_storable(
        items, f"task `{compiled.node.name}`, with_items", ITEMS_CAPS * draft.plan.payload_cap
    )
    fan = FanOut(len(items), window=_render_window(compiled, names), settled=bytearray((len(items) + 7) // 8))
    fan.digest = hashlib.sha256(orjson.dumps(items)).hexdigest()[:16]
    if task_state.kept is not None:
        if task_state.kept.digest == fan.digest:
            fan.settled[:] = task_state.kept.items
        else:
            draft.decision.forget_kept.add(task)
        task_state.kept = None
    if not items:
        task_state.given, task_state.result = True, []
        yield from end_task(draft, task, COMPLETED)
        return
    task_state.fan, task_state.status = fan, OPEN
    draft.state.open += 1
    draft.facts.items[task] = dict(enumerate(items))
    yield from start_items(draft, compiled, task_state)
    if fan.begun < fan.total and not fan.stopped:
        draft.decision.store_items[task] = items


def start_items(draft: Draft, compiled: CompiledTask, task_state: TaskState) -> Asking[None]:
    """Start the next items, within the task's window and the budget of this decision."""
    fan, task = task_state.fan, compiled.node.index
    assert fan is not None
    names = yield from _item_names(draft, compiled)
    while fan.room > 0 and draft.budget > 0:
        item = fan.begun
        if item not in draft.facts.items.get(task, ()):
            end_of_range = min(fan.total, item + min(fan.room, draft.budget))
            yield from draft.scope.load(Needed(items={task: (item, end_of_range)}))
        fan.begun += 1
        if fan.settled[item >> 3] & 1 << (item & 7):
            fan.ended += 1  # the item completed in the run before
            continue
        names["item"], names["index"] = draft.facts.items[task][item], item
        try:
            draft.decision.starts.append(make_start(compiled, item, names))
        except RENDER_ERRORS as error:
            fan.first_error = fan.first_error or {**describe_error(error), "item": item}
            fan.note_end(item)
            _count_failure(draft, compiled, fan)
            continue
        draft.budget -= 1
    if fan.room > 0:
        fan.queued = True
        draft.state.due.appendleft(task)
    yield from _end_if_idle(draft, compiled, task_state)


def end_item(draft: Draft, child: ChildEnded, task_state: TaskState) -> Asking[None]:
    """Count the end of an item. Then queue the task to start more items, or end it after its last item."""
    fan, compiled = task_state.fan, draft.plan[child.task]
    assert fan is not None
    if child.item is None or not 0 <= child.item < fan.begun or not fan.note_end(child.item):
        return
    yield from draft.to_change(child.task)
    if child.status not in (COMPLETED, SKIPPED):
        fan.cancelled += int(child.status == CANCELLED and _is_cancelling(draft, compiled, fan))
        _count_failure(draft, compiled, fan)
    if fan.room > 0 and not fan.queued and draft.state.phase == "running":
        fan.queued = True
        draft.state.due.append(child.task)
    yield from _end_if_idle(draft, compiled, task_state)


def _item_names(draft: Draft, compiled: CompiledTask) -> Asking[dict[str, Any]]:
    """Return the names that the item templates of a task see. The names are evaluated again only after a publish."""
    task, published = compiled.node.index, len(draft.decision.published)
    cached = draft.item_names.get(task)
    if cached is None or cached[0] != published:
        names = yield from draft.scope.namespace(compiled.reads["start"], task)
        cached = draft.item_names[task] = (published, names)
    return cached[1]


def _count_failure(draft: Draft, compiled: CompiledTask, fan: FanOut) -> None:
    fan.failed += 1
    policy = compiled.node.step.item_failures
    if policy.then != "finish" and fan.failed > policy.tolerated(fan.total):
        fan.stopped = True
        if policy.then == "cancel":
            draft.decision.cancel.add(compiled.node.index)


def _is_cancelling(draft: Draft, compiled: CompiledTask, fan: FanOut) -> bool:
    """Return whether the engine cancels the running items, because other items have failed or the workflow is
    stopping."""
    return draft.state.phase == "stopping" or (
        fan.stopped and compiled.node.step.item_failures.then == "cancel"
    )


def _end_if_idle(draft: Draft, compiled: CompiledTask, task_state: TaskState) -> Asking[None]:
    """End the task if none of its items runs and none will start."""
    fan = task_state.fan
    assert fan is not None
    if fan.running or (fan.room > 0 and draft.state.phase == "running"):
        return
    task = compiled.node.index
    fails = fan.failed > compiled.node.step.item_failures.tolerated(fan.total)
    if not fails and fan.begun == fan.total:
        yield from end_task(draft, task, COMPLETED)
        return
    errors: Mapping[int, TaskResult] = {}
    if fan.failed:
        yield from draft.scope.load(Needed(item_errors={task}))
        errors = draft.facts.item_errors[task]
    yield from end_task(draft, task, FAILED if fails else CANCELLED, describe_failed_items(fan, errors))


def end_idle_fan_out(draft: Draft, task: int, task_state: TaskState) -> Asking[None]:
    """End a fan-out of a stopping workflow if none of its items runs: no item's end will come to end it."""
    if task_state.fan is not None:
        yield from _end_if_idle(draft, draft.plan[task], task_state)


def _render_items(compiled: CompiledTask, names: dict[str, Any]) -> list[Any]:
    place = f"task `{compiled.node.name}`, with_items"
    items = compiled.render["with_items"](names)
    if not isinstance(items, list | tuple):
        hint = "For a mapping, write `| items | list`." if isinstance(items, dict) else None
        raise ExpressionError(
            f"{place}: its value has the type {type(items).__name__}, and must be a list", hint=hint
        )
    size = compiled.node.step.batch_size
    batches: Sequence[Any] = (
        items if size is None else [items[n : n + size] for n in range(0, len(items), size)]
    )
    if len(batches) > MAX_ITEMS:
        hint = "Give each execution several items with batch_size, or split the work between sub-workflows."
        raise ExpressionError(f"{place}: {len(batches):,} items are more than {MAX_ITEMS:,}", hint=hint)
    return list(batches)


def _render_window(compiled: CompiledTask, names: dict[str, Any]) -> int:
    """Return the number of items that may run at a time. 0 means all."""
    if "concurrency" not in compiled.render:
        return 0
    window = compiled.render["concurrency"](names)
    if isinstance(window, bool) or not isinstance(window, int) or window < 1:
        raise ExpressionError(
            f"task `{compiled.node.name}`, concurrency: it gives {window!r}",
            hint="It takes a whole number, at least 1.",
        )
    return window
