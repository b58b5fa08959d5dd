"""Moves a workflow on: from its state and what has ended to the new state and what is to be done.

Changes are taken one after the other, each to its last consequence, so that it makes no difference in which
batches they come. The cost is that of what changed and of what comes right after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.engine.arrivals import decide, deliver
from penstock.engine.decision import Change, Decision, Published
from penstock.engine.facts import WORKFLOW, Facts, Needed
from penstock.engine.fan_out import item_ended
from penstock.engine.kept import Kept
from penstock.engine.plan import Plan
from penstock.engine.prefetch import foresee
from penstock.engine.scope import Steps
from penstock.engine.starts import end_as_kept, start_due
from penstock.engine.state import OPEN, Head
from penstock.engine.task_end import conclude, end, leave
from penstock.engine.task_errors import error_of
from penstock.engine.working_state import BUDGET, Run
from penstock.errors import ExpressionError
from penstock.moves import FAILED


def begin(
    plan: Plan,
    facts: Facts,
    system: Mapping[str, Any],
    *,
    kept: Mapping[int, Kept] | None = None,
    budget: int = BUDGET,
) -> Steps[Decision]:
    """The first decision of a run. Of a re-run, `kept` are the tasks that ended in the run before and stay
    so."""
    run = Run(plan, Head(len(plan.graph)), facts, system, budget)
    facts.records = dict.fromkeys(range(len(plan.graph) + 1))
    for task, before in (kept or {}).items():
        record = yield from run.record(task)
        record.kept = before
    try:
        if plan.workflow.vars:
            yield from run.scope.load(Needed(parameters=plan.vars_read.parameters))
            values = plan.vars({"parameters": facts.parameters or {}, "system": system})
            run.decision.published.extend(Published(WORKFLOW, name, value) for name, value in values.items())
    except ExpressionError as error:
        yield from leave(run, FAILED, error_of(error))
    else:
        for task, before in (kept or {}).items():
            if before.by_hand:
                yield from end_as_kept(run, task, before)
        for node in plan.graph.entries:
            record = yield from run.record(node.index)
            if record.undecided:
                yield from decide(run, plan[node.index], record)
        yield from deliver(run)
        yield from conclude(run)
    yield from start_due(run)
    return run.decision


def advance(
    plan: Plan,
    head: Head,
    changes: Iterable[Change],
    facts: Facts,
    system: Mapping[str, Any],
    *,
    budget: int = BUDGET,
) -> Steps[Decision]:
    """What follows from `changes`; with none, from what is due. A change that is known already changes
    nothing.

    A generator: each time it yields, `facts` lack what the yielded `Needed` names; add that and go on. It
    returns the decision. `head` and the records in `facts` are changed in place. `system` is what expressions
    see of that name."""
    changes = list(changes)
    run = Run(plan, head, facts, system, budget)
    if head.phase == "ended":
        return run.decision
    yield from foresee(run, changes)
    yield from start_due(run)
    for change in changes:
        yield from _apply(run, change)
        yield from start_due(run)
    return run.decision


def _apply(run: Run, change: Change) -> Steps[None]:
    if change.task not in run.facts.records:
        yield Needed(records={change.task})
    record = run.facts.records[change.task]
    if record is None or record.status != OPEN:
        return  # not of this run, or known already
    if record.fan is not None:
        yield from item_ended(run, change, record)
    elif change.item is None:
        yield from end(run, change.task, change.status)
