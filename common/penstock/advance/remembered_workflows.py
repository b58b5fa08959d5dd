"""The workflows that a worker remembers, because it has read them at the end of a task or taken their last turn. The
worker decides without a lock what follows the end of a task. The database only checks that the state behind the
decision is still current (`store.workflows.steps.take_steps`)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn
from uuid import UUID

from penstock import tracing
from penstock.advance.child_targets import known_targets, remembered
from penstock.advance.open_workflows import OpenWorkflow, opened, read_plans
from penstock.advance.start_children import ChildStart, are_placed, new_children
from penstock.advance.turn_spans import Turns
from penstock.advance.turns import take_turns
from penstock.advance.write_decisions import ended_workflows, new_state
from penstock.engine import ChildEnded, Facts, TaskResult
from penstock.engine.state import TaskState
from penstock.language.moves import COMPLETED
from penstock.language.workflows.target import target_ref
from penstock.run.stored_json import stored_value
from penstock.store.executions.attempts import AttemptEnd
from penstock.store.session.database import Row, Session, Transaction
from penstock.store.workflows.children import NewChild
from penstock.store.workflows.steps import Step, read_unlocked

MOST_WORKFLOWS, MOST_TASKS = 256, 500
"""The number of workflows that are remembered (the most recent ones), and the largest number of tasks of each."""


class NotRemembered(Exception):
    """Raised if a decision needs a fact that only the database has."""


class FromMemory(Transaction):
    """A substitute for a transaction, for decisions from memory only. Each statement raises NotRemembered."""

    def __init__(self, session: Session) -> None:
        self.cache = session.cache
        self.settings = session.settings

    async def fetch(self, sql: str, *args: Any) -> list[Row]:
        self._asked()

    async def execute(self, sql: str, *args: Any) -> str:
        self._asked()

    def _asked(self) -> NoReturn:
        raise NotRemembered


class RememberedWorkflows:
    """The remembered workflows by id, each with the version that was read or written. A turn of the workflow changes
    the object in place, so the workflow is removed first, and stored again once the turn is committed."""

    def __init__(self) -> None:
        self._known: OrderedDict[UUID, tuple[OpenWorkflow, int]] = OrderedDict()
        self._unfit: OrderedDict[UUID, None] = OrderedDict()
        """Parents for which the last turn of the workflow could not be decided from memory. Their state is not read for
        the next turn."""

    def keep(self, workflow: OpenWorkflow, version: int) -> None:
        """Remember a workflow that was committed with this version. Its facts must have the states of all its tasks."""
        stored, facts = workflow.stored, workflow.facts
        kept_facts = Facts(
            tasks=facts.tasks, parameters=facts.parameters, context=facts.context, rerun=facts.rerun
        )
        self._known[workflow.id] = (
            OpenWorkflow(stored, workflow.plan, kept_facts, trace=workflow.trace),
            version,
        )
        if len(self._known) > MOST_WORKFLOWS:
            self._known.popitem(last=False)
        self._unfit.pop(workflow.id, None)

    async def decide(self, session: Session, ends: Sequence[AttemptEnd]) -> tuple[Step, Turns] | None:
        """Decide from memory what follows these ends. Workflows that are new to this worker are read first. Return None
        if anything but starts follows, or if another fact has to be read."""
        parents = {end.workflow for end in ends if end.workflow is not None}
        if any(end.workflow is None or end.ending.status != COMPLETED for end in ends):
            return None
        await self.read(session, parents - self._known.keys() - self._unfit.keys())
        decided = await self._decide(session, ends)
        if decided is None:
            self._unfit.update(dict.fromkeys(parents))
            while len(self._unfit) > MOST_WORKFLOWS:
                self._unfit.popitem(last=False)
        return decided

    async def read(self, session: Session, ids: Collection[UUID]) -> None:
        """Remember the workflows among `ids` that run and are small, in their present state."""
        if not ids:
            return
        workflows = await read_unlocked(session, ids)
        plans = await read_plans(session, {workflow.stored.definition for workflow in workflows})
        for unlocked in workflows:
            stored = unlocked.stored
            workflow = opened(stored, plans[stored.definition], unlocked.trace if tracing.is_on() else None)
            if is_small(workflow):
                all_tasks(workflow, unlocked.tasks)
                self.keep(workflow, unlocked.version)

    async def _decide(self, session: Session, ends: Sequence[AttemptEnd]) -> tuple[Step, Turns] | None:
        memory = self._open(ends)
        if memory is None:
            return None
        workflows, versions = memory
        tx = FromMemory(session)
        try:
            turns = await take_turns(tx, workflows)
            return await _step(tx, turns, versions), turns
        except NotRemembered:
            return None

    def _open(self, ends: Sequence[AttemptEnd]) -> tuple[list[OpenWorkflow], Mapping[UUID, int]] | None:
        ids = {end.workflow for end in ends}
        popped = {id: self._known.pop(id) for id in ids & self._known.keys() if id is not None}
        if len(popped) < len(ids):
            return None
        for end in ends:
            assert end.workflow is not None
            if not _takes(popped[end.workflow][0], end):
                return None
        return [popped[id][0] for id in sorted(popped)], {id: version for id, (_, version) in popped.items()}


def all_tasks(workflow: OpenWorkflow, stored: Mapping[int, TaskState]) -> None:
    """Set the stored states as those of all tasks of the workflow: the other tasks have none."""
    workflow.facts.tasks = {**dict.fromkeys(range(len(workflow.plan.graph) + 1)), **stored}


def is_small(workflow: OpenWorkflow) -> bool:
    """Return True if the workflow is small enough to be remembered."""
    return len(workflow.plan.graph) <= MOST_TASKS


def _takes(workflow: OpenWorkflow, end: AttemptEnd) -> bool:
    """Add the end of a completed task to the workflow's input, and return True. Return False for other ends, and for
    items of a fan-out: their number is unknown here."""
    assert end.task is not None
    task = workflow.plan.index(end.task)
    state = workflow.facts.tasks.get(task)
    if state is None or state.fan is not None:
        return False
    workflow.ends.append(ChildEnded(task, end.ending.status))
    result = None if end.ending.result is None else stored_value(end.ending.result.encode())
    workflow.facts.results[task] = TaskResult(result)
    return True


async def _step(tx: FromMemory, turns: Turns, versions: Mapping[UUID, int]) -> Step:
    for _, turn in turns:
        if not turn.only_starts or turn.more_due:
            raise NotRemembered
    starts = [ChildStart.of(workflow, start) for workflow, turn in turns for start in turn.starts[1]]
    children, targets = await remembered_children(tx, starts)
    expected = {workflow.id: (versions[workflow.id], workflow.stored.stops) for workflow, _ in turns}
    return Step(expected, new_state(turns), children, targets, ended_workflows(turns))


async def remembered_children(
    tx: FromMemory, starts: Sequence[ChildStart]
) -> tuple[list[NewChild], dict[str, int]]:
    """Return the executions to create for these starts, and the definitions that the database has to check. Raises
    NotRemembered if one of them needs a fact that only the database has, or fails at once."""
    if any(start.item is not None for _, start, _ in starts) or not are_placed(tx, starts):
        raise NotRemembered
    targets = await known_targets(tx, sorted({target_ref(start.step) for _, start, _ in starts}))
    children, errors = await new_children(tx, starts, targets)
    if errors:
        raise NotRemembered
    return children, remembered(targets)
