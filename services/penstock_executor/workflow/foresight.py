"""Ask at once for what a batch of changes will need, so that one look into the database does for all of it.

Only a guess, which decides nothing: what it leaves out is asked for later, what it asks in vain does no harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from penstock.workflows.templates import Stage
from penstock_executor.workflow.decision import Change
from penstock_executor.workflow.loading import EVERYTHING, Needed
from penstock_executor.workflow.run import Run
from penstock_executor.workflow.scope import Steps
from penstock_executor.workflow.state import OPEN


def first_needed(run: Run, changes: Sequence[Change]) -> Needed:
    """The records that any decision on these changes begins with."""
    tasks = {change.task for change in changes} | set(list(run.head.due)[: run.budget])
    needed = Needed(records=tasks)
    for change in changes:
        needed.records.update(run.plan.graph[change.task].targets)
    return needed


def foresee(run: Run, changes: Sequence[Change]) -> Steps[None]:
    """Load the records, then what the tasks read that probably end or start."""
    yield from run.scope.load(first_needed(run, changes))
    needed = Needed()
    ends = Counter(change.task for change in changes if _counts(run, change))
    arrivals: Counter[int] = Counter()
    for task, count in ends.items():
        record = run.facts.records[task]
        assert record is not None
        compiled = run.plan[task]
        if record.fan is not None:
            fan = record.fan
            if fan.begun < fan.total and not fan.stopped and not run.head.paused:
                needed.items[task] = (fan.begun, min(fan.total, fan.begun + min(count, run.budget)))
                run.scope.wanted(needed, compiled.reads["start"], task)
            if fan.running > count or fan.begun < fan.total:
                continue
        run.scope.wanted(needed, compiled.reads["settle"], task)
        arrivals.update(compiled.node.targets)
    for target, count in arrivals.items():
        known = run.facts.records[target]
        before = 0 if known is None else known.arrived
        node = run.plan.graph[target]
        if (known is None or known.undecided) and (node.early_success or before + count == len(node.sources)):
            stages: tuple[Stage, ...] = ("decide", "fan", "start")
            for stage in stages:
                run.scope.wanted(needed, run.plan[target].reads[stage], target)
    if run.head.phase == "running" and len(ends) >= run.head.left:
        if run.plan.exit is not None:
            needed.records.add(run.plan.exit)
        else:
            run.scope.wanted(needed, run.plan.output_read, EVERYTHING)
    yield from run.scope.load(needed)


def _counts(run: Run, change: Change) -> bool:
    record = run.facts.records.get(change.task)
    return record is not None and record.status == OPEN
