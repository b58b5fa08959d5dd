"""Random sequences of all that happens to executions under limits with costs, on a real database and on a plain model: after
each step both agree on the place of each and on what is left, and no invariant is violated."""

from __future__ import annotations

import asyncio
import os
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pydantic import SecretStr

from penstock import Limit
from penstock.settings import Settings
from penstock.store.session.database import Database
from tests.penstock.store.admission.desk import Desk, later
from tests.penstock.store.admission.test_model import EMPTY
from tests.penstock.store.admission.weights import HOLDING, WINDOW, Costed, Memory, TokensAndEach, Weights

EXAMPLES = int(os.environ.get("PENSTOCK_EXAMPLES", "12"))
SETTLE = "select settle_costs($1, $2::uuid[], $3::integer[], $4::text[], $5::numeric[])"
LEFT = """
select l.ref, (key_room(array[(l.id, '')::limit_key]))[1].free as free from concurrency_limit l
where l.ref in ('shop.tokens', 'shop.memory')
"""


def tokens(count: int) -> Limit:
    return Limit(
        count, per=WINDOW, ref="shop.tokens", scope="shop", cost="{{ parameters.tokens }}", unit="tokens"
    )


def memory(max: int) -> Limit:
    return Limit(max, ref="shop.memory", scope="shop.refund", cost="{{ parameters.tokens }}")


def each(max: int) -> Limit:
    return Limit(max, ref="shop.each", scope="shop.charge", by="customer")


class Machine(RuleBasedStateMachine):
    """Every rule is a step of the real thing and of the model."""

    runner: asyncio.Runner
    desk: Desk
    kind: type[Weights]
    actions: tuple[str, ...]

    def __init__(self) -> None:
        super().__init__()
        self.model = self.kind(tokens=12, memory=12, charges=2)
        self.run(self._open())

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    def limits(self) -> list[Limit]:
        if self.kind is Memory:
            return [memory(self.model.memory)]
        return [tokens(self.model.tokens), each(self.model.charges)]

    async def _open(self) -> None:
        await self.desk.session.fetch(EMPTY)
        await self.desk.open(*self.limits())

    @rule(
        data=st.data(),
        customer=st.sampled_from("ab"),
        costs=st.lists(st.integers(0, 9), min_size=1, max_size=4),
        priority=st.sampled_from([0, 0, 0, 2]),
        together=st.booleans(),
    )
    def request(
        self, data: st.DataObject, customer: str, costs: list[int], priority: int, together: bool
    ) -> None:
        action = data.draw(st.sampled_from(self.actions))

        async def work() -> None:
            ids = []
            for cost in costs:
                ids += await self.desk.request(1, action, priority, customer=customer, tokens=cost)
            ready = await self._ready(ids)
            items = [
                Costed(id, action, customer, cost, -priority, ready[id])
                for id, cost in zip(ids, costs, strict=True)
            ]
            self.model.all |= {item.id: item for item in items}
            for batch in [items] if together else [[item] for item in items]:
                await self.desk.admit([item.id for item in batch])
                self.model.ask(batch)

        self.run(work())

    @rule(
        data=st.data(),
        customer=st.sampled_from("ab"),
        costs=st.lists(st.integers(0, 9), min_size=1, max_size=4),
        priority=st.sampled_from([0, 0, 0, 2]),
    )
    def submit(self, data: st.DataObject, customer: str, costs: list[int], priority: int) -> None:
        action = data.draw(st.sampled_from(self.actions))

        async def work() -> None:
            params = [{"customer": customer, "tokens": cost} for cost in costs]
            ids, messages = await self.desk.submit_group(params, action, priority)
            assert not messages, "they are few"
            ready = await self._ready(ids)
            items = [
                Costed(id, action, customer, cost, -priority, ready[id])
                for id, cost in zip(ids, costs, strict=True)
            ]
            self.model.all |= {item.id: item for item in items}
            self.model.ask(items)

        self.run(work())

    async def _ready(self, ids: list[Any]) -> dict[Any, Any]:
        rows = await self.desk.session.fetch(
            "select id, ready_at from execution where id = any($1::uuid[])", ids
        )
        return {row["id"]: row["ready_at"] for row in rows}

    def some(self, data: st.DataObject, *statuses: str) -> list[Costed]:
        items = sorted(self.model.those(*statuses), key=lambda item: item.id)
        picked = data.draw(st.sets(st.integers(0, len(items) - 1), min_size=1, max_size=3))
        return [items[n] for n in sorted(picked)]

    @precondition(lambda self: self.model.those("scheduled"))
    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        items = self.some(data, "scheduled")
        for id in self.run(self.desk.claim([item.id for item in items])):
            self.model.all[id].status = "running"

    @precondition(lambda self: self.model.those("running", "canceling"))
    @rule(data=st.data(), how=st.sampled_from(["completed", "failed", "requested"]), true=st.integers(0, 14))
    def finish(self, data: st.DataObject, how: str, true: int) -> None:
        """An attempt ends, and reports its true cost where `true` is not 14."""
        [item, *_] = self.some(data, "running", "canceling")

        async def work() -> None:
            async with self.desk.database.session().transaction() as tx:
                if true < 14:
                    rows = await tx.fetch("select attempt from execution where id = $1", item.id)
                    await tx.fetch(
                        SETTLE,
                        self.desk.worker,
                        [item.id],
                        [rows[0]["attempt"]],
                        ["tokens"],
                        [Decimal(true)],
                    )
                await self.desk.finish([item.id], how, session=tx)
            item.ready_at = (await self._ready([item.id]))[item.id]
            if isinstance(self.model, TokensAndEach) and true < 14:
                self.model.report(item, true)
            again = how == "requested" and item.status != "canceling"
            item.status = (
                "queued"
                if again
                else "cancelled"
                if item.status == "canceling" and how != "completed"
                else how
            )
            self.model.settle()

        self.run(work())

    @precondition(lambda self: self.model.those("requested", "queued", *HOLDING))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        items = self.some(data, "requested", "queued", *HOLDING)
        self.run(self.desk.cancel([item.id for item in items]))
        for item in items:
            item.status = "canceling" if item.status in ("running", "canceling") else "cancelled"
        self.model.settle()

    @precondition(lambda self: self.model.those("queued"))
    @rule(data=st.data(), priority=st.integers(-1, 3))
    def priority(self, data: st.DataObject, priority: int) -> None:
        [item, *_] = self.some(data, "queued")

        async def work() -> None:
            await self.desk.session.fetch("select * from set_priority($1, $2::smallint)", item.id, priority)
            item.rank = -priority
            self.model.settle()

        self.run(work())

    @rule(minutes=st.sampled_from([700 / 60, 1400 / 60]))
    def time_passes(self, minutes: float) -> None:
        self.run(later(self.desk, minutes * 60))
        self.model.now += minutes * 60
        self.model.settle()

    @rule(count=st.integers(4, 20), each_max=st.integers(1, 3))
    def the_limits_change(self, count: int, each_max: int) -> None:
        self.model.tokens = self.model.memory = count
        self.model.charges = each_max

        async def work() -> None:
            await self.desk.apply(*self.limits())
            self.model.settle()
            await self.desk.timers()

        self.run(work())

    @invariant()
    def they_agree(self) -> None:
        if not self.model.all:
            return

        async def work() -> None:
            await self.desk.tidy()
            rows = await self.desk.session.fetch("select id, status from execution")
            assert {row["id"]: row["status"] for row in rows} == {
                id: item.status for id, item in self.model.all.items()
            }
            free = {row["ref"]: row["free"] for row in await self.desk.session.fetch(LEFT)}
            if self.kind is Memory:
                assert free["shop.memory"] == self.model.memory_left()
            else:
                assert free["shop.tokens"] == self.model.tokens_left()

        self.run(work())

    def teardown(self) -> None:
        self.run(self.desk.sound())


@pytest.mark.parametrize(
    ("kind", "actions"), [(TokensAndEach, ("shop.charge", "shop.refund")), (Memory, ("shop.refund",))]
)
def test_weights_agree_with_the_model(database: str, kind: type[Weights], actions: tuple[str, ...]) -> None:
    with asyncio.Runner() as runner:
        home = Database(Settings(database_url=SecretStr(database)), role="test")

        class Bound(Machine):
            pass

        Bound.runner, Bound.desk, Bound.kind, Bound.actions = runner, Desk(home), kind, actions
        try:
            run_state_machine_as_test(
                Bound,
                settings=settings(
                    max_examples=EXAMPLES,
                    stateful_step_count=40,
                    deadline=None,
                    derandomize="PENSTOCK_EXAMPLES" not in os.environ,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(home.close())
