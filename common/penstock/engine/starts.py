"""Starting what is due."""

from __future__ import annotations

from typing import Any

from penstock.engine.fan_out import fan_out, fill
from penstock.engine.kept import Kept
from penstock.engine.plan import Compiled
from penstock.engine.scope import Steps
from penstock.engine.state import DUE, OPEN, Fan, Record
from penstock.engine.task_end import end
from penstock.engine.task_errors import error_of
from penstock.engine.task_input import input_of, start_of
from penstock.engine.working_state import Run
from penstock.errors import ExpressionError
from penstock.language.workflows.model import FAIL, NOOP
from penstock.moves import COMPLETED, FAILED


def start_due(run: Run) -> Steps[None]:
    """Start what is due, in order, as far as the budget of this decision goes."""
    while run.head.due and run.head.phase in ("running", "exiting") and not run.head.paused:
        if run.budget <= 0:
            run.decision.again = True
            return
        task = run.head.due.popleft()
        record = yield from run.record(task)
        if record.status == DUE:
            yield from _start(run, run.plan[task], record)
        elif record.fan is not None:
            record.fan.queued = False
            yield from fill(run, run.plan[task], record)


def end_as_kept(run: Run, task: int, kept: Kept) -> Steps[None]:
    """A task of a re-run ends at once, as it did in the run before."""
    assert kept.status is not None
    record = yield from run.record(task)
    record.kept = None
    record.given, record.result = kept.given, kept.result
    if kept.total is not None:
        record.fan = Fan(kept.total, begun=kept.total, ended=kept.total)
    yield from end(run, task, kept.status, kept.error)


def _start(run: Run, compiled: Compiled, record: Record) -> Steps[None]:
    node = compiled.node
    if record.kept is not None and record.kept.status is not None:
        yield from end_as_kept(run, node.index, record.kept)
        return
    try:
        if node.step.with_items is not None:
            yield from fan_out(run, compiled, record)
            return
        names = yield from run.scope.namespace(compiled.reads["start"], node.index)
        if node.step.kind in (NOOP, FAIL):
            yield from _at_once(run, compiled, record, names)
            return
        start = start_of(compiled, None, names)
    except ExpressionError as error:
        record.given = True
        yield from end(run, node.index, FAILED, error_of(error))
        return
    run.decision.starts.append(start)
    run.budget -= 1
    run.head.open += 1
    record.status = OPEN


def _at_once(run: Run, compiled: Compiled, record: Record, names: dict[str, Any]) -> Steps[None]:
    """`noop` and `fail`, which need no worker."""
    given = input_of(compiled, names)
    record.given = True
    if compiled.node.step.kind == NOOP:
        record.result = given
        yield from end(run, compiled.node.index, COMPLETED)
    else:
        message = str(given.get("message", "the workflow says so"))
        yield from end(run, compiled.node.index, FAILED, {"type": "Failed", "message": message})
