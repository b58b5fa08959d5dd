"""A decision in the making."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from penstock.engine.decision import Decision
from penstock.engine.facts import Asking, Facts, Needed
from penstock.engine.plan import Plan
from penstock.engine.scope import Scope
from penstock.engine.state import TaskState, WorkflowState

BUDGET = 1_000
"""How many executions one decision starts at most; the rest is left to the next one."""


class Arrival(NamedTuple):
    """`source` has ended, and comes to `target` as `outcome`. `rescue`: by its failure route."""

    target: int
    source: int
    outcome: str
    rescue: bool


class Draft:
    """A decision on one workflow in the making: what is known, what was decided so far, and which ends are still on their
    way to the tasks after them (`arriving`)."""

    def __init__(
        self,
        plan: Plan,
        state: WorkflowState,
        facts: Facts,
        system: Mapping[str, Any],
        budget: int = BUDGET,
    ) -> None:
        self.plan = plan
        self.state = state
        self.facts = facts
        self.budget = budget
        self.decision = Decision(state)
        self.scope = Scope(plan, facts, system, self.decision.published)
        if state.outcome is not None:
            self.set_outcome(*state.outcome)
        self.item_names: dict[int, tuple[int, dict[str, Any]]] = {}
        """By task, what its items see, and how many values had been published when that was worked out."""
        self.arriving: list[Arrival] = []
        """A heap: what arrives at the task that stands first in the workflow's order comes first."""

    def set_outcome(self, status: str, error: Any) -> None:
        """All tasks have ended: the outcome is known, and the exit task may see it."""
        self.state.outcome = (status, error)
        self.scope.system = {**self.scope.system, "status": status, "error": error}

    def to_change(self, task: int) -> Asking[TaskState]:
        """The state of a task that is about to change. The decision will say that it did."""
        if task not in self.facts.tasks:
            yield Needed(tasks={task})
        state = self.facts.tasks[task]
        if state is None:
            state = self.facts.tasks[task] = TaskState()
        self.decision.tasks[task] = state
        return state
