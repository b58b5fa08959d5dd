"""Random sequences of all that happens to executions under a breaker, on a real database and on a plain model: after each step
both agree on the place of each and on the state of each breaker, and no invariant is violated."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

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

from penstock import Limit
from penstock.settings import Settings
from penstock.store.admission import breakers
from penstock.store.session.database import Database
from tests.penstock.store.admission.breakers import Breakers, Call
from tests.penstock.store.admission.desk import Desk, later
from tests.penstock.store.admission.test_model import EMPTY

EXAMPLES = int(os.environ.get("PENSTOCK_EXAMPLES", "12"))
LIMIT = Limit(
    ref="shop.bank",
    scope="shop",
    by="customer",
    breaker={"failures": 2, "of": 4, "within": "1h", "probe": "20m"},
)
CLEAR = "delete from breaker returning 1"
CLEAR_ATTEMPTS = "delete from breaker_attempt returning 1"
FINISH = """
select * from finish_attempts($1, $2::uuid[], $3::smallint[], $4::text[], array_fill(null::text, array[cardinality($2)]),
    $5::text[], array_fill(0::float8, array[cardinality($2)]), null, null, '{}'::uuid[], '{}'::uuid[])
"""
LOSE = "select * from recover_executions($1, $2::uuid[], 'lost')"
STATES = """
select b.group_value, b.releasing_since is not null as releasing, b.allowed, b.passed from breaker b
"""
ENDS = {
    "completed": ("completed", None, False),
    "failed": ("failed", '{"type": "Broken"}', True),
    "retried": ("requested", '{"type": "Broken"}', True),
    "refused": ("failed", '{"type": "InvalidInput"}', None),
    "deferred": ("requested", None, None),
}
"""Of each end of an attempt: the status, the error, and whether it counts as a failure."""


async def time_passes(desk: Desk, seconds: float) -> None:
    await later(desk, seconds)
    past = "make_interval(secs => $1)"
    for statement in (
        f"update breaker set opened_at = opened_at - {past}, probe_at = probe_at - {past},"
        f" releasing_since = releasing_since - {past} returning 1",
        f"update breaker_attempt set ended_at = ended_at - {past} returning 1",
    ):
        await desk.session.fetch(statement, seconds)


class Machine(RuleBasedStateMachine):
    """Every rule is a step of the real thing and of the model."""

    runner: asyncio.Runner
    desk: Desk

    def __init__(self) -> None:
        super().__init__()
        self.model = Breakers(failures=2, of=4, within=3600, probe=1200)
        self.run(self._open())

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    async def _open(self) -> None:
        await self.desk.session.fetch(EMPTY)
        await self.desk.session.fetch(CLEAR)
        await self.desk.session.fetch(CLEAR_ATTEMPTS)
        await self.desk.open(LIMIT)

    @rule(
        customer=st.sampled_from("aab"),
        count=st.integers(1, 5),
        priority=st.sampled_from([0, 0, 0, 2]),
        is_submit=st.booleans(),
    )
    def start(self, customer: str, count: int, priority: int, is_submit: bool) -> None:
        async def work() -> None:
            if is_submit:
                ids, _ = await self.desk.submit_group(
                    [{"customer": customer}] * count, "shop.charge", priority
                )
            else:
                ids = await self.desk.request(count, "shop.charge", priority, customer=customer)
                await self.desk.admit(ids)
            ready = await self._ready(ids)
            calls = [Call(id, customer, -priority, ready[id]) for id in ids]
            self.model.all |= {call.id: call for call in calls}
            self.model.ask(calls)

        self.run(work())

    async def _ready(self, ids: Sequence[Any]) -> dict[Any, Any]:
        rows = await self.desk.session.fetch(
            "select id, ready_at from execution where id = any($1::uuid[])", list(ids)
        )
        return {row["id"]: row["ready_at"] for row in rows}

    def some(self, data: st.DataObject, *statuses: str) -> list[Call]:
        calls = sorted(self.model.those(*statuses), key=lambda call: call.id)
        picked = data.draw(st.sets(st.integers(0, len(calls) - 1), min_size=1, max_size=5))
        return [calls[n] for n in sorted(picked)]

    @precondition(lambda self: self.model.those("scheduled"))
    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        calls = self.some(data, "scheduled")
        claimed = self.run(self.desk.claim([call.id for call in calls]))
        assert len(claimed) == len(calls)
        for id in claimed:  # on an ordered route, the worker may get others
            assert self.model.all[id].status == "scheduled"
            self.model.all[id].status = "running"

    @precondition(lambda self: self.model.those("running"))
    @rule(data=st.data(), how=st.sampled_from([*ENDS, "failed", "failed", "completed", "completed"]))
    def finish(self, data: st.DataObject, how: str) -> None:
        self.end(self.some(data, "running"), how)

    @precondition(lambda self: self.model.those("scheduled", "running"))
    @rule(how=st.sampled_from(["failed", "failed", "completed"]), data=st.data())
    def all_end(self, how: str, data: st.DataObject) -> None:
        """All that is under way for one customer ends alike, as while a service is down: thresholds are reached."""
        under_way = self.model.those("scheduled", "running")
        customer = data.draw(st.sampled_from(sorted({call.customer for call in under_way})))
        own = [call for call in under_way if call.customer == customer]
        if scheduled := [call.id for call in own if call.status == "scheduled"]:
            for id in self.run(self.desk.claim(scheduled)):
                self.model.all[id].status = "running"
        self.end([call for call in own if call.status == "running"], how)

    def end(self, calls: Sequence[Call], how: str) -> None:
        status, error, failed = ENDS[how]

        async def work() -> None:
            rows = await self.desk.session.fetch(
                "select id, attempt from execution where id = any($1::uuid[])", [call.id for call in calls]
            )
            attempts = {row["id"]: row["attempt"] for row in rows}
            await self.desk.session.fetch(
                FINISH,
                self.desk.worker,
                [call.id for call in calls],
                [attempts[call.id] for call in calls],
                [status] * len(calls),
                [error] * len(calls),
            )
            ready = await self._ready([call.id for call in calls])
            for call in calls:
                call.status = "queued" if status == "requested" else status
                call.ready_at = ready[call.id]
            self.model.end([(call, failed) for call in calls])

        if calls:
            self.run(work())

    @precondition(lambda self: self.model.those("running"))
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        """The worker of these attempts has died."""
        calls = self.some(data, "running")

        async def work() -> None:
            await self.desk.session.fetch(LOSE, self.desk.worker, [call.id for call in calls])
            ids = [call.id for call in calls]
            for id, status in zip(sorted(ids), await self.desk.statuses(sorted(ids)), strict=True):
                self.model.all[id].status = "abandoned" if status == "abandoned" else "queued"
            self.model.end([(call, None) for call in calls])

        self.run(work())

    @precondition(lambda self: self.model.those("queued", "scheduled"))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """These end without an attempt, so they count for no breaker."""
        calls = self.some(data, "queued", "scheduled")
        self.run(self.desk.cancel([call.id for call in calls]))
        for call in calls:
            call.status = "cancelled"
        self.model.settle()

    @rule(seconds=st.sampled_from([700, 1300]))
    def wait(self, seconds: int) -> None:
        self.run(time_passes(self.desk, seconds))
        self.model.now += seconds
        self.model.settle()

    @rule(customer=st.sampled_from("ab"), minutes=st.sampled_from([None, 30]))
    def open_by_hand(self, customer: str, minutes: int | None) -> None:
        async def work() -> None:
            async with self.desk.database.session().transaction() as tx:
                key = await breakers.lock(tx, "shop.bank", f'{{"customer": "{customer}"}}')
                assert key is not None
                probe_at = minutes and datetime.now(UTC) + timedelta(minutes=minutes)
                await breakers.open_(tx, key, probe_at or None, "ada", None)

        self.run(work())
        self.model.open(customer, self.model.now + minutes * 60 if minutes else inf)
        self.model.settle()

    @rule(customer=st.sampled_from("ab"), is_gradual=st.booleans())
    def close_by_hand(self, customer: str, is_gradual: bool) -> None:
        async def work() -> None:
            async with self.desk.database.session().transaction() as tx:
                key = await breakers.lock(tx, "shop.bank", f'{{"customer": "{customer}"}}')
                assert key is not None
                await breakers.close(tx, key, is_gradual)

        self.run(work())
        switch = self.model.switch(customer)
        if switch.state != "closed":
            if is_gradual:
                self.model.release(customer)
                switch.attempts = []
            else:
                switch.state = "closed"
                switch.attempts = []
                switch.epoch += 1
        self.model.settle()

    @invariant()
    def they_agree(self) -> None:
        if not self.model.all:
            return

        async def work() -> None:
            await self.desk.tidy()
            rows = await self.desk.session.fetch("select id, status from execution")
            assert {row["id"]: row["status"] for row in rows} == {
                id: call.status for id, call in self.model.all.items()
            }
            states = {row["group_value"]: row for row in await self.desk.session.fetch(STATES)}
            for customer, switch in self.model.switches.items():
                row = states.pop(f'["{customer}"]', None)
                if switch.state == "closed":
                    assert row is None
                else:
                    assert row is not None
                    assert (row["releasing"], row["allowed"], row["passed"]) == (
                        switch.state == "releasing",
                        switch.allowed,
                        switch.passed,
                    )
            assert not states

        self.run(work())

    def teardown(self) -> None:
        self.run(self.desk.sound())


def test_breakers_agree_with_the_model(database: str) -> None:
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
                    phases=(Phase.explicit, Phase.generate),
                    derandomize="PENSTOCK_EXAMPLES" not in os.environ,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(home.close())
