"""Fan-outs: a task over the items of a list, so many at a time, each item an execution.

What has to be done for an end of an item does not depend on how many there are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import orjson

from penstock.engine.decision import Change
from penstock.engine.facts import Needed
from penstock.engine.plan import Compiled
from penstock.engine.scope import Steps
from penstock.engine.state import OPEN, Fan, Record
from penstock.engine.task_end import end
from penstock.engine.task_errors import error_of, items_error
from penstock.engine.task_input import start_of
from penstock.engine.working_state import Run
from penstock.errors import ExpressionError
from penstock.moves import CANCELLED, COMPLETED, FAILED, SKIPPED

MAX_ITEMS = 100_000


def fan_out(run: Run, compiled: Compiled, record: Record) -> Steps[None]:
    """Start a task over its items. Raises ExpressionError if there is no list of them."""
    task = compiled.node.index
    names = yield from run.scope.namespace(compiled.reads["fan"], task)
    items = _items(compiled, names)
    fan = Fan(len(items), window=_window(compiled, names), settled=bytearray((len(items) + 7) // 8))
    fan.digest = hashlib.sha256(orjson.dumps(items)).hexdigest()[:16]
    if record.kept is not None:
        if record.kept.digest == fan.digest:
            fan.settled[:] = record.kept.items
        else:
            run.decision.forget.add(task)
        record.kept = None
    if not items:
        record.given, record.result = True, []
        yield from end(run, task, COMPLETED)
        return
    record.fan, record.status = fan, OPEN
    run.head.open += 1
    run.facts.items[task] = dict(enumerate(items))
    yield from fill(run, compiled, record)
    if fan.begun < fan.total and not fan.stopped:
        run.decision.keep_items[task] = items


def fill(run: Run, compiled: Compiled, record: Record) -> Steps[None]:
    """Start the next items, as far as the task's window and the budget of this decision go."""
    fan, task = record.fan, compiled.node.index
    assert fan is not None
    names = yield from _names(run, compiled)
    while fan.room > 0 and run.budget > 0:
        item = fan.begun
        if item not in run.facts.items.get(task, ()):
            end_of_range = min(fan.total, item + min(fan.room, run.budget))
            yield from run.scope.load(Needed(items={task: (item, end_of_range)}))
        fan.begun += 1
        if fan.settled[item >> 3] & 1 << (item & 7):
            fan.ended += 1  # kept from the run before
            continue
        names["item"], names["index"] = run.facts.items[task][item], item
        try:
            run.decision.starts.append(start_of(compiled, item, names))
        except ExpressionError as error:
            fan.first_error = fan.first_error or error_of(error)
            fan.settle(item)
            _failed(run, compiled, fan)
            continue
        run.budget -= 1
    if fan.room > 0:
        fan.queued = True
        run.head.due.appendleft(task)
    yield from _see(run, compiled, record)


def item_ended(run: Run, change: Change, record: Record) -> Steps[None]:
    """An item has ended: another may start, or that was the last."""
    fan, compiled = record.fan, run.plan[change.task]
    assert fan is not None
    if change.item is None or not 0 <= change.item < fan.begun or not fan.settle(change.item):
        return
    yield from run.record(change.task)
    if change.status not in (COMPLETED, SKIPPED):
        _failed(run, compiled, fan)
    if fan.room > 0 and not fan.queued and run.head.phase == "running":
        fan.queued = True
        run.head.due.append(change.task)
    yield from _see(run, compiled, record)


def _names(run: Run, compiled: Compiled) -> Steps[dict[str, Any]]:
    """What the items of a task see, worked out again only if something was published since."""
    task, published = compiled.node.index, len(run.decision.published)
    known = run.names.get(task)
    if known is None or known[0] != published:
        names = yield from run.scope.namespace(compiled.reads["start"], task)
        known = run.names[task] = (published, names)
    return known[1]


def _failed(run: Run, compiled: Compiled, fan: Fan) -> None:
    fan.failed += 1
    policy = compiled.node.step.item_failures
    if policy.then != "finish" and fan.failed > policy.tolerated(fan.total):
        fan.stopped = True
        if policy.then == "cancel":
            run.decision.cancel.add(compiled.node.index)


def _see(run: Run, compiled: Compiled, record: Record) -> Steps[None]:
    """End the task if nothing of it runs and nothing more will start."""
    fan = record.fan
    assert fan is not None
    if fan.running or (fan.room > 0 and run.head.phase == "running"):
        return
    if fan.failed > compiled.node.step.item_failures.tolerated(fan.total):
        error = items_error(fan.failed, fan.total, fan.total - fan.begun, fan.first_error)
        yield from end(run, compiled.node.index, FAILED, error)
    elif fan.begun < fan.total:
        error = items_error(fan.failed, fan.total, fan.total - fan.begun, fan.first_error)
        yield from end(run, compiled.node.index, CANCELLED, error)
    else:
        yield from end(run, compiled.node.index, COMPLETED)


def end_idle(run: Run, task: int, record: Record) -> Steps[None]:
    """The workflow stops: end a fan-out of which nothing runs, as no end of an item will come."""
    if record.fan is not None and record.status == OPEN:
        yield from _see(run, run.plan[task], record)


def _items(compiled: Compiled, names: dict[str, Any]) -> list[Any]:
    place = f"task `{compiled.node.name}`, with_items"
    items = compiled.render["with_items"](names)
    if not isinstance(items, list | tuple):
        hint = "Of a mapping take `| items | list`." if isinstance(items, dict) else None
        raise ExpressionError(f"{place}: it gives a {type(items).__name__}, not a list", hint=hint)
    size = compiled.node.step.batch_size
    found: Sequence[Any] = (
        items if size is None else [items[n : n + size] for n in range(0, len(items), size)]
    )
    if len(found) > MAX_ITEMS:
        hint = "Give each execution several, with batch_size, or split the work between sub-workflows."
        raise ExpressionError(f"{place}: {len(found):,} items are more than {MAX_ITEMS:,}", hint=hint)
    return list(found)


def _window(compiled: Compiled, names: dict[str, Any]) -> int:
    """How many may run at a time; 0 for all."""
    if "concurrency" not in compiled.render:
        return 0
    window = compiled.render["concurrency"](names)
    if isinstance(window, bool) or not isinstance(window, int) or window < 1:
        raise ExpressionError(
            f"task `{compiled.node.name}`, concurrency: it gives {window!r}",
            hint="It takes a whole number, at least 1.",
        )
    return window
