"""The prefetch of the facts that a batch of ends will probably need, in one round trip to the database.

It is a guess and decides nothing. A fact that it misses is requested later, and a superfluous fact does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from penstock.engine.decision import ChildEnded
from penstock.engine.draft import Draft
from penstock.engine.facts import EVERYTHING, Asking, Needed
from penstock.engine.plan import FIRST_STAGES, CompiledTask
from penstock.engine.state import OPEN


def first_needed(draft: Draft, ends: Sequence[ChildEnded]) -> set[int]:
    """Return the tasks with states that every decision on these ends needs."""
    tasks = set(islice(draft.state.due, draft.budget))
    for task in {child.task for child in ends}:  # a target may be among `tasks` already, if it ended itself
        tasks.add(task)
        tasks.update(draft.plan.graph[task].targets)
    return tasks


def prefetch(draft: Draft, child_ends: Sequence[ChildEnded]) -> Asking[None]:
    """Load the states of these tasks. Then load the facts that a task reads at its end or its start, for the tasks that
    will probably end or start."""
    known_tasks = draft.facts.tasks
    first = first_needed(draft, child_ends) - known_tasks.keys()
    if first:
        yield Needed(tasks=first)
    ends: dict[int, int] = {}
    for child in child_ends:
        state = known_tasks[child.task]
        if state is not None and state.status == OPEN:
            ends[child.task] = ends.get(child.task, 0) + 1
    needed = Needed()
    arrivals: dict[int, int] = {}
    for task, count in ends.items():
        compiled = draft.plan[task]
        if _ends(draft, compiled, count, needed):
            draft.scope.add_needed(needed, compiled.reads["settle"], task)
            for target in compiled.node.targets:
                arrivals[target] = arrivals.get(target, 0) + 1
    for target, count in arrivals.items():
        compiled, state = draft.plan[target], known_tasks[target]
        if compiled.reads_to_start and (state is None or state.undecided):
            arrived = count + (0 if state is None else state.arrived)
            if compiled.node.early_success or arrived == len(compiled.node.sources):
                for stage in FIRST_STAGES:
                    draft.scope.add_needed(needed, compiled.reads[stage], target)
    if draft.state.phase == "running" and len(ends) >= draft.state.left:
        if draft.plan.exit is not None:
            needed.tasks.add(draft.plan.exit)
        else:
            draft.scope.add_needed(needed, draft.plan.output_read, EVERYTHING)
    if needed:
        yield from draft.scope.load(needed)


def _ends(draft: Draft, compiled: CompiledTask, count: int, needed: Needed) -> bool:
    """Return whether a task probably ends when `count` of its executions have ended. If more of its items start
    instead, add these to `needed`."""
    task = compiled.node.index
    task_state = draft.facts.tasks[task]
    if task_state is None or task_state.fan is None:
        return True
    fan = task_state.fan
    if fan.begun < fan.total and not fan.stopped and not draft.state.paused:
        needed.items[task] = (fan.begun, min(fan.total, fan.begun + min(count, draft.budget)))
        draft.scope.add_needed(needed, compiled.reads["start"], task)
    return fan.running <= count and fan.begun == fan.total
