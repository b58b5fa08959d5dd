"""One advance of one workflow, under way: what it knows, what it has decided so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from penstock.engine.decision import Decision
from penstock.engine.facts import Facts, Needed
from penstock.engine.plan import Plan
from penstock.engine.scope import Scope, Steps
from penstock.engine.state import Head, Record

BUDGET = 1_000
"""How many executions one decision starts at most; the rest is left to the next one."""


class Arrival(NamedTuple):
    """`source` has ended, and comes to `target` as `outcome`. `rescue`: by its failure route."""

    target: int
    source: int
    outcome: str
    rescue: bool


class Run:
    def __init__(
        self,
        plan: Plan,
        head: Head,
        facts: Facts,
        system: Mapping[str, Any],
        budget: int = BUDGET,
    ) -> None:
        self.plan = plan
        self.head = head
        self.facts = facts
        self.budget = budget
        self.decision = Decision(head)
        self.scope = Scope(plan, facts, system, self.decision.published)
        if head.outcome is not None:
            self.ends_as(*head.outcome)
        self.names: dict[int, tuple[int, dict[str, Any]]] = {}
        """What the items of fan-outs see, with the number of things published when it was worked out."""
        self.arriving: list[Arrival] = []
        """A heap: what arrives at the task that stands first in the workflow's order comes first."""

    def ends_as(self, status: str, error: Any) -> None:
        """All tasks have ended: the outcome is known, and the exit task may see it."""
        self.head.outcome = (status, error)
        self.scope.system = {**self.scope.system, "status": status, "error": error}

    def record(self, task: int) -> Steps[Record]:
        """The record of a task, which is going to be changed."""
        if task not in self.facts.records:
            yield Needed(records={task})
        found = self.facts.records[task]
        if found is None:
            found = self.facts.records[task] = Record()
        self.decision.records[task] = found
        return found
