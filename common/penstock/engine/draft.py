"""The draft of a decision, which the modules of the engine fill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from penstock.engine.decision import Decision
from penstock.engine.facts import Asking, Facts, Needed
from penstock.engine.plan import Plan
from penstock.engine.scope import Scope
from penstock.engine.state import TaskState, WorkflowState

BUDGET = 1_000
"""The maximum number of executions that one decision starts. The next decision starts the rest."""


class Arrival(NamedTuple):
    """The end of the task `source`, on its way to its successor `target`, where it counts as `outcome`. `rescue` is
    true if it came by a failure route."""

    target: int
    source: int
    outcome: str
    rescue: bool


class Draft:
    """A decision on one workflow in the making: the known facts, the decision so far, and the ends that have not been
    delivered to the successors yet (`arriving`)."""

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
        """For each fan-out task, the names that its items see, and the number of published values when they were
        evaluated."""
        self.arriving: list[Arrival] = []
        """A heap of arrivals, ordered by target: the first task in the workflow's order comes first."""
        self.doubtful: set[int] = set()
        """With `fail_fast`, the tasks that have failed and perhaps are handled by no task any more."""

    def set_outcome(self, status: str, error: Any) -> None:
        """Set the outcome of the workflow, once all tasks have ended. The expressions of the exit task see it."""
        self.state.outcome = (status, error)
        self.scope.system = {**self.scope.system, "status": status, "error": error}

    def to_change(self, task: int) -> Asking[TaskState]:
        """Return the state of a task that the caller will change. The decision lists the task as changed."""
        if task not in self.facts.tasks:
            yield Needed(tasks={task})
        state = self.facts.tasks[task]
        if state is None:
            state = self.facts.tasks[task] = TaskState()
        self.decision.tasks[task] = state
        return state
