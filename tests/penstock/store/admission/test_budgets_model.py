"""Random sequences of all that happens to executions under budgets, on a real database and on a plain model: after each step
both agree on the place of each and on what is left, and no invariant is violated."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.admission.budgets import budgets_of
from penstock.store.session.database import Database
from tests.penstock.store.admission.desk import Desk
from tests.penstock.store.admission.test_budgets import TOKENS, children, root, settled
from tests.penstock.store.admission.test_model import EMPTY
from tests.penstock.store.admission.test_weights import end

EXAMPLES = int(os.environ.get("PENSTOCK_EXAMPLES", "8"))
HOLDING = ("scheduled", "running")


@dataclass
class Child:
    """An execution of a tree, with the ledger of its attempts."""

    id: UUID
    cost: int
    status: str = "queued"
    ledger: list[int] = field(default_factory=list)


@dataclass
class Tree:
    """A tree with its budget. The order of `line` is that of the starts and of the retries."""

    amount: int
    waits: bool
    line: list[Child] = field(default_factory=list)

    @property
    def free(self) -> int:
        return self.amount - sum(sum(child.ledger) for child in self.line)

    def settle(self) -> None:
        while waiting := [child for child in self.line if child.status == "queued"]:
            if waiting[0].cost <= self.free:
                waiting[0].status = "scheduled"
                waiting[0].ledger.append(waiting[0].cost)
            elif self.waits or any(child.status in HOLDING for child in self.line):
                return
            else:
                for child in waiting:
                    if child.cost > self.free:
                        child.status = "cancelled"


class Machine(RuleBasedStateMachine):
    """Every rule is a step of the real thing and of the model."""

    runner: asyncio.Runner
    desk: Desk

    def __init__(self) -> None:
        super().__init__()
        self.trees: dict[UUID, Tree] = {}
        self.run(self._open())

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    async def _open(self) -> None:
        await self.desk.session.fetch(EMPTY + ", budget, budget_tree, budget_entry")
        await self.desk.open(TOKENS)

    def draw(self, data: st.DataObject, *statuses: str) -> tuple[Tree, Child]:
        pairs = [
            (tree, child) for tree in self.trees.values() for child in tree.line if child.status in statuses
        ]
        return data.draw(st.sampled_from(pairs))

    def has(self, *statuses: str) -> bool:
        return any(child.status in statuses for tree in self.trees.values() for child in tree.line)

    @precondition(lambda self: len(self.trees) < 3)
    @rule(amount=st.integers(5, 30), waits=st.booleans())
    def plant(self, amount: int, waits: bool) -> None:
        id = self.run(root(self.desk, amount, "wait" if waits else "refuse"))
        self.trees[id] = Tree(amount, waits)

    @precondition(lambda self: self.trees)
    @rule(data=st.data(), costs=st.lists(st.integers(0, 12), min_size=1, max_size=3))
    def start(self, data: st.DataObject, costs: list[int]) -> None:
        id = data.draw(st.sampled_from(sorted(self.trees)))
        tree = self.trees[id]
        for cost in costs:
            [new] = self.run(children(self.desk, id, cost))
            refused = not tree.waits and cost > tree.amount
            tree.line.append(Child(new, cost, "cancelled" if refused else "queued"))
            self.run(settled(self.desk))
            tree.settle()

    @precondition(lambda self: self.has("scheduled"))
    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        _, child = self.draw(data, "scheduled")
        assert self.run(self.desk.claim([child.id])) == [child.id]
        child.status = "running"

    @precondition(lambda self: self.has("running"))
    @rule(data=st.data(), true=st.integers(0, 20), again=st.booleans())
    def finish(self, data: st.DataObject, true: int, again: bool) -> None:
        """An attempt ends, and reports its true cost where `true` is not 20. It may be retried."""
        tree, child = self.draw(data, "running")

        async def work() -> None:
            cost = true if true < 20 else None
            if again:
                await self.desk.finish([child.id], "requested")
            else:
                await end(self.desk, child.id, cost, attempt=len(child.ledger))

        self.run(work())
        child.status = "queued" if again else "completed"
        if again:
            tree.line.remove(child)
            tree.line.append(child)
        elif true < 20:
            child.ledger[-1] = true
        tree.settle()

    @precondition(lambda self: self.has("queued", "scheduled"))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        tree, child = self.draw(data, "queued", "scheduled")
        self.run(self.desk.cancel([child.id]))
        if child.status == "scheduled":
            child.ledger.pop()
        child.status = "cancelled"
        tree.settle()

    @precondition(lambda self: self.trees)
    @rule(data=st.data(), increase=st.integers(1, 10))
    def raise_it(self, data: st.DataObject, increase: int) -> None:
        id = data.draw(st.sampled_from(sorted(self.trees)))
        tree = self.trees[id]
        tree.amount += increase
        self.run(self.desk.session.fetch("select * from raise_budget($1, 'tokens', $2)", id, tree.amount))
        tree.settle()

    @invariant()
    def they_agree(self) -> None:
        async def work() -> None:
            await settled(self.desk)
            await settled(self.desk)
            rows = await self.desk.session.fetch("select id, status from execution")
            status = {row["id"]: row["status"] for row in rows}
            for id, tree in self.trees.items():
                assert [status[child.id] for child in tree.line] == [child.status for child in tree.line]
                [budget] = await budgets_of(self.desk.session, id)
                assert budget.remaining == tree.free

        self.run(work())

    def teardown(self) -> None:
        self.run(self.desk.sound())


def test_budgets_agree_with_the_model(database: str) -> None:
    with asyncio.Runner() as runner:
        home = Database(Settings(database_url=SecretStr(database)), role="test")

        class Bound(Machine):
            pass

        Bound.runner, Bound.desk = runner, Desk(home)
        try:
            run_state_machine_as_test(
                Bound,
                settings=settings(
                    max_examples=EXAMPLES,
                    stateful_step_count=30,
                    deadline=None,
                    phases=(Phase.explicit, Phase.generate),  # a failed play takes minutes to shrink
                    derandomize="PENSTOCK_EXAMPLES" not in os.environ,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(home.close())
