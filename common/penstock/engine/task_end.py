"""A task has ended, and perhaps the workflow with it."""

from __future__ import annotations

from typing import Any

from penstock.engine.arrivals import deliver
from penstock.engine.decision import Final
from penstock.engine.facts import EVERYTHING, Needed
from penstock.engine.scope import Steps
from penstock.engine.state import DUE, OPEN, Record, outcome_of
from penstock.engine.task_errors import error_of, failures_error
from penstock.engine.transitions import settle
from penstock.engine.working_state import Run
from penstock.errors import ExpressionError
from penstock.language.workflows.rules import FAILURE
from penstock.moves import COMPLETED, FAILED

SHOWN = 10
"""How many failed tasks the error of a workflow names."""


def end(run: Run, task: int, status: str, error: Any = None) -> Steps[None]:
    """A task has ended, whatever it was doing: everything that follows from it."""
    record = yield from run.record(task)
    if record.status == OPEN:
        run.head.open -= 1
    record.status = status
    if error is not None:
        record.error = error
    if task == run.plan.exit:
        yield from _exited(run, record)
        return
    run.head.left -= 1
    yield from settle(run, run.plan[task], record)
    yield from deliver(run)
    yield from conclude(run)


def conclude(run: Run) -> Steps[None]:
    """See whether everything has ended, and how."""
    head = run.head
    if head.phase == "running" and head.left == 0:
        error = None
        if head.unhandled or head.faults:
            error = yield from _failures(run)
        yield from leave(run, FAILED if error else COMPLETED, error)
    elif head.phase == "stopping" and head.open == 0:
        assert head.outcome is not None
        yield from leave(run, *head.outcome)


def leave(run: Run, status: str, error: Any) -> Steps[None]:
    """All tasks have ended. Start the exit task if there is one; else this is the end."""
    run.ends_as(status, error)
    run.head.due.clear()
    if run.plan.exit is None:
        yield from finish(run)
        return
    run.head.phase = "exiting"
    record = yield from run.record(run.plan.exit)
    record.status = DUE
    run.head.due.append(run.plan.exit)


def finish(run: Run) -> Steps[None]:
    """The end, as `head.outcome` says; but an output that fails fails the workflow."""
    assert run.head.outcome is not None
    status, error = run.head.outcome
    output = None
    if status == COMPLETED and run.plan.workflow.output is not None:
        try:
            names = yield from run.scope.namespace(run.plan.output_read, EVERYTHING)
            output = run.plan.output(names)
        except ExpressionError as failed:
            status, error = FAILED, error_of(failed)
    run.head.phase = "ended"
    run.head.due.clear()
    run.decision.final = Final(status, output, error)


def _failures(run: Run) -> Steps[dict[str, Any]]:
    """The error of the workflow: the first of the tasks whose failure nobody handled."""
    yield from run.scope.load(Needed(failures=bool(run.head.unhandled)))
    candidates = {**(run.facts.failures or {}), **run.decision.records}
    found = {task: record for task, record in candidates.items() if _unhandled(run, task, record)}
    shown = sorted(found)[:SHOWN]
    yield from run.scope.load(Needed(results={task for task in shown if not found[task].given}))
    ends = {run.plan.graph[task].name: run.scope.ended(task, found[task]) for task in shown}
    return failures_error(ends, run.head.unhandled, run.head.faults)


def _unhandled(run: Run, task: int, record: Record) -> bool:
    if not record.final or record.handled:
        return False
    return outcome_of(record.status, run.plan.graph[task].step.allow_failure) == FAILURE


def _exited(run: Run, record: Record) -> Steps[None]:
    """The exit task has ended. Its failure fails a workflow that would have completed, and changes no other
    end."""
    exit = run.plan.graph.exit
    assert run.head.outcome is not None
    assert exit is not None
    if outcome_of(record.status, exit.step.allow_failure) == FAILURE and run.head.outcome[0] == COMPLETED:
        yield from run.scope.load(Needed(results=set() if record.given else {exit.index}))
        ended = run.scope.ended(exit.index, record)
        run.head.outcome = (FAILED, failures_error({exit.name: ended}, 1, []))
    yield from finish(run)
