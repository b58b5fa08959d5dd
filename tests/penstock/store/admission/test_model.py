"""Random sequences of all that happens to executions under limits, on a real database and on a plain model: after
each step both agree on the place of each, and no invariant is violated."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import Any

import hypothesis.strategies as st
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
from tests.penstock.store.admission.desk import ACTIONS, Desk
from tests.penstock.store.admission.model import HOLDING, Model, One

EXAMPLES = int(os.environ.get("PENSTOCK_EXAMPLES", "12"))
"""More of them find more; the same few are tried in every run of all tests."""

EMPTY = """
truncate execution, payload, result, attempt, live, claim, process, slot, waiter, lane, wake, admission, history, timer,
    outbox, finished, inquiry
"""


def each(max: int) -> Limit:
    return Limit(max, ref="shop.each", scope="shop.charge", by="customer")


def whole(max: int) -> Limit:
    return Limit(max, ref="shop.whole", scope="shop")


class Machine(RuleBasedStateMachine):
    """Every rule is a step of the real thing and of the model."""

    runner: asyncio.Runner
    desk: Desk

    def __init__(self) -> None:
        super().__init__()
        self.model = Model(each=2, whole=3)
        self.workers: list[Any] = []
        self.run(self._open())

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    async def _open(self) -> None:
        await self.desk.session.fetch(EMPTY)
        await self.desk.open(each(2), whole(3))

    async def _changed(self) -> None:
        await self.desk.timers()
        await self.desk.tidy()

    @rule(
        action=st.sampled_from(["shop.charge", "shop.charge", "shop.refund", "mail.send"]),
        customers=st.lists(st.sampled_from("ab"), min_size=1, max_size=3),
        priority=st.sampled_from([0, 0, 0, 2]),
        together=st.booleans(),
    )
    def request(self, action: str, customers: list[str], priority: int, together: bool) -> None:
        async def work() -> None:
            ids = []
            for customer in customers:
                ids += await self.desk.request(1, action, priority, customer=customer)
            rows = await self.desk.session.fetch(
                "select id, ready_at from execution where id = any($1::uuid[])", ids
            )
            ready = {row["id"]: row["ready_at"] for row in rows}
            made = [
                One(id, action, customer, -priority, ready[id])
                for id, customer in zip(ids, customers, strict=True)
            ]
            self.model.all |= {one.id: one for one in made}
            for batch in [made] if together else [[one] for one in made]:
                await self.desk.admit([one.id for one in batch])
                self.model.admit(batch)

        self.run(work())

    @rule(
        action=st.sampled_from(["shop.charge", "shop.charge", "shop.refund", "mail.send"]),
        customers=st.lists(st.sampled_from("ab"), min_size=1, max_size=4),
        priority=st.sampled_from([0, 0, 0, 2]),
    )
    def submit(self, action: str, customers: list[str], priority: int) -> None:
        async def work() -> None:
            ids, asked = await self.desk.submit_group(
                [{"customer": one} for one in customers], action, priority
            )
            assert not asked, "they are few"
            rows = await self.desk.session.fetch(
                "select id, ready_at from execution where id = any($1::uuid[]) order by id", ids
            )
            made = [
                One(row["id"], action, customer, -priority, row["ready_at"])
                for row, customer in zip(rows, customers, strict=True)
            ]
            self.model.all |= {one.id: one for one in made}
            self.model.admit(made)

        self.run(work())

    def some(self, data: st.DataObject, *statuses: str) -> list[One]:
        ones = sorted(self.model.those(*statuses), key=lambda one: one.id)
        picked = data.draw(st.sets(st.integers(0, len(ones) - 1), min_size=1, max_size=3))
        return [ones[n] for n in sorted(picked)]

    @precondition(lambda self: self.model.all)
    @rule(data=st.data())
    def a_message_comes_again(self, data: st.DataObject) -> None:
        ones = self.some(data, *{one.status for one in self.model.all.values()})
        self.run(self.desk.admit([one.id for one in ones]))
        self.model.admit(ones)

    @precondition(lambda self: self.model.those("scheduled") and not self.model.away)
    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        """A message is a turn where priorities wait: another execution of its route may have it."""
        ones = self.some(data, "scheduled")
        claimed = set(self.run(self.desk.claim([one.id for one in ones])))
        assert len(claimed) == len(ones)
        assert claimed <= {one.id for one in self.model.those("scheduled")}
        for id in claimed:
            self.model.all[id].status = "running"

    @precondition(lambda self: self.model.those("running", "canceling"))
    @rule(data=st.data(), how=st.sampled_from(["completed", "failed", "requested", "waiting"]))
    def finish(self, data: st.DataObject, how: str) -> None:
        ones = self.some(data, "running", "canceling")
        self.run(self._finish(ones, how))

    async def _finish(self, ones: list[One], how: str) -> None:
        await self.desk.finish([one.id for one in ones], how)
        asked = how if how in ("requested", "waiting", "failed") else None
        await self._reread(ones)
        self.model.end(
            ones, lambda one: "cancelled" if one.status == "canceling" and asked else how
        )  # what was told to end is not tried again

    async def _reread(self, ones: list[One]) -> None:
        """A retry is ready from its own instant on."""
        rows = await self.desk.session.fetch(
            "select id, ready_at from execution where id = any($1::uuid[])", [one.id for one in ones]
        )
        for row in rows:
            self.model.all[row["id"]].ready_at = row["ready_at"]

    @precondition(lambda self: self.model.those("requested"))
    @rule(data=st.data())
    def a_retry_is_due(self, data: st.DataObject) -> None:
        ones = self.some(data, "requested")
        self.run(self.desk.admit([one.id for one in ones]))
        self.model.admit(ones)

    @precondition(lambda self: self.model.those("waiting"))
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        [one, *_] = self.some(data, "waiting")
        self.run(self.desk.session.fetch("select * from answer_inquiry($1, '1', 'somebody')", one.id))
        self.model.end([one], "completed")

    @precondition(lambda self: self.model.those("requested", "queued", "waiting", *HOLDING))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        ones = self.some(data, "requested", "queued", "waiting", *HOLDING)
        self.run(self.desk.cancel([one.id for one in ones]))
        self.model.end(
            ones, lambda one: "canceling" if one.status in ("running", "canceling") else "cancelled"
        )

    @precondition(lambda self: not self.model.away)
    @rule()
    def the_worker_is_lost(self) -> None:
        async def work() -> None:
            ones = self.model.those("running", "canceling")
            await self.desk.dismiss(self.desk.worker)
            self.model.away = True
            await self.desk.session.fetch(
                "select * from recover_executions($1, $2::uuid[], 'lost')",
                self.desk.worker,
                sorted(one.id for one in ones),
            )
            await self._reread(ones)
            self.model.end(ones, lambda one: "cancelled" if one.status == "canceling" else "requested")
            await self._changed()

        self.run(work())

    @precondition(lambda self: self.model.away)
    @rule(unclaimed=st.booleans())
    def a_worker_comes(self, unclaimed: bool) -> None:
        async def work() -> None:
            if unclaimed:
                ones = [one for one in self.model.those("scheduled") if self.model.keys(one)]
                await self.desk.session.fetch("select * from return_unclaimed(interval '0', 500)")
                self.model.end(ones, "requested")
            await self.desk.hire(*(action.ref for action in ACTIONS))
            self.model.away = False
            self.model.settle()
            await self._changed()

        self.run(work())

    @rule(each_max=st.integers(1, 3), whole_max=st.integers(1, 5))
    def the_limits_change(self, each_max: int, whole_max: int) -> None:
        async def work() -> None:
            await self.desk.apply(each(each_max), whole(whole_max))
            self.model.each, self.model.whole = each_max, whole_max
            self.model.settle()
            await self._changed()

        self.run(work())

    @invariant()
    def they_agree(self) -> None:
        if not self.model.all:
            return

        async def work() -> None:
            await self.desk.tidy()
            rows = await self.desk.session.fetch("select id, status from execution")
            assert {row["id"]: row["status"] for row in rows} == {
                id: one.status for id, one in self.model.all.items()
            }
            slots = await self.desk.slots()
            assert sorted(slots.values()) == sorted(Counter(self.model.slots()).values())

        self.run(work())

    def teardown(self) -> None:
        self.run(self.desk.sound())


def test_the_database_agrees_with_the_model(database: str) -> None:
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
                    stateful_step_count=40,
                    deadline=None,
                    derandomize="PENSTOCK_EXAMPLES" not in os.environ,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(home.close())
