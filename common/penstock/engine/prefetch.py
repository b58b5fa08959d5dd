"""Ask at once for what a batch of changes will need, so that one look into the database does for all of it.

Only a guess, which decides nothing: what it leaves out is asked for later, what it asks in vain does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from penstock.engine.decision import Change
from penstock.engine.facts import EVERYTHING, Needed
from penstock.engine.plan import FIRST_STAGES, Compiled
from penstock.engine.scope import Steps
from penstock.engine.state import OPEN
from penstock.engine.working_state import Run


def first_needed(run: Run, changes: Sequence[Change]) -> set[int]:
    """The tasks whose records any decision on these changes begins with."""
    tasks = set(islice(run.head.due, run.budget))
    for change in changes:
        if change.task not in tasks:
            tasks.add(change.task)
            tasks.update(run.plan.graph[change.task].targets)
    return tasks


def foresee(run: Run, changes: Sequence[Change]) -> Steps[None]:
    """Load the records, then what the tasks read that probably end or start."""
    records = run.facts.records
    first = first_needed(run, changes) - records.keys()
    if first:
        yield Needed(records=first)
    ends: dict[int, int] = {}
    for change in changes:
        known = records[change.task]
        if known is not None and known.status == OPEN:
            ends[change.task] = ends.get(change.task, 0) + 1
    needed = Needed()
    arrivals: dict[int, int] = {}
    for task, count in ends.items():
        compiled = run.plan[task]
        if _ends(run, compiled, count, needed):
            run.scope.wanted(needed, compiled.reads["settle"], task)
            for target in compiled.node.targets:
                arrivals[target] = arrivals.get(target, 0) + 1
    for target, count in arrivals.items():
        compiled, known = run.plan[target], records[target]
        if compiled.reads_first and (known is None or known.undecided):
            arrived = count + (0 if known is None else known.arrived)
            if compiled.node.early_success or arrived == len(compiled.node.sources):
                for stage in FIRST_STAGES:
                    run.scope.wanted(needed, compiled.reads[stage], target)
    if run.head.phase == "running" and len(ends) >= run.head.left:
        if run.plan.exit is not None:
            needed.records.add(run.plan.exit)
        else:
            run.scope.wanted(needed, run.plan.output_read, EVERYTHING)
    if needed:
        yield from run.scope.load(needed)


def _ends(run: Run, compiled: Compiled, count: int, needed: Needed) -> bool:
    """Whether a task probably ends when `count` of its executions have ended. If more of its items start
    instead, they are needed."""
    task = compiled.node.index
    record = run.facts.records[task]
    if record is None or record.fan is None:
        return True
    fan = record.fan
    if fan.begun < fan.total and not fan.stopped and not run.head.paused:
        needed.items[task] = (fan.begun, min(fan.total, fan.begun + min(count, run.budget)))
        run.scope.wanted(needed, compiled.reads["start"], task)
    return fan.running <= count and fan.begun == fan.total
