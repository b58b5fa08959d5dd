"""Random plays of all that happens to executions under a breaker, on a real database and on an interpreter of the page. After
each step both agree on each execution, on the order of admissions, and on the state, attempts and room of each breaker."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any
from uuid import UUID

import pytest

from penstock import Limit
from penstock.store.admission import breakers
from tests.penstock.store.admission.breakers import (
    Cancel,
    Claim,
    CloseByHand,
    End,
    Lose,
    Model,
    OpenByHand,
    Options,
    Start,
    Step,
    Wait,
    options,
    steps,
)
from tests.penstock.store.admission.desk import Desk, later

SEEDS = range(int(os.environ.get("PENSTOCK_EXAMPLES", "12")))
STEPS = 90
ERRORS = {
    "failed": '{"type": "Broken"}',
    "retried": '{"type": "Broken"}',
    "timeout": '{"type": "timeout"}',
    "refused": '{"type": "InvalidInput"}',
}
STATUSES = {"retried": "requested", "deferred": "requested", "refused": "failed"}
"""Of the ends of an attempt that are not a status: the status that a worker reports."""
FINISH = """
select * from finish_attempts($1, $2::uuid[], $3::smallint[], $4::text[], array_fill(null::text, array[cardinality($2)]),
    $5::text[], array_fill(0::float8, array[cardinality($2)]), null, null, '{}'::uuid[], '{}'::uuid[])
"""
ATTEMPTS = "select id, attempt from execution where id = any ($1::uuid[])"
LOSE = "select * from recover_executions($1, $2::uuid[], 'lost')"
ADMISSIONS = "select execution_id, group_value from admission order by seq"
STATE = """
select k.group_value, b.limit_id is not null as is_open, b.releasing_since is not null as is_releasing, b.allowed, b.passed,
    extract(epoch from b.probe_at - clock_timestamp())::float8 as probe_in, breaker_room(l.id, k.group_value) as room,
    array(select a.failed from breaker_attempt a where a.limit_id = l.id and a.group_value = k.group_value
          and a.ended_at > clock_timestamp() - make_interval(secs => (l.breaker ->> 'within')::float8)
          order by a.ended_at, a.ctid) as attempts
from concurrency_limit l cross join unnest($1::text[]) k (group_value)
left join breaker b on b.limit_id = l.id and b.group_value = k.group_value
where l.ref = 'shop.bank'
"""
NO_BOUND = 2147483647
RULES = {
    "a call from before the opening fails while it is open",
    "a failure is too old to count",
    "a probe completes",
    "a probe ends without an answer",
    "a probe fails",
    "a probe starts beside calls from before the opening",
    "closes, as none waits",
    "lets 4 calls start",
    "lets 8 calls start",
    "opens while closed",
    "opens while open",
    "opens while releasing",
    "refused parameters do not open it",
    "starts once a failure is too old to count",
    "takes back what was admitted and not claimed",
}


class Player:
    """The product, which plays the steps of the interpreter."""

    def __init__(self, desk: Desk, model: Model) -> None:
        self._desk = desk
        self._model = model
        self._ids: list[UUID] = []

    async def play(self, step: Step) -> Step:
        """Play a step, and return it with the executions that the product has chosen."""
        match step:
            case Start(customer, numbers, priority, is_submit):
                await self._start(customer, len(numbers), priority, is_submit)
            case Claim(numbers):
                return await self._claim(numbers, len(numbers))
            case End(outcomes):
                await self._end(outcomes)
            case Lose(numbers):
                await self._desk.session.fetch(LOSE, self._desk.worker, self._named(numbers))
            case Cancel(numbers):
                await self._desk.cancel(self._named(numbers))
            case Wait(seconds):
                await _skip(self._desk, seconds)
            case OpenByHand(customer, seconds):
                probe_at = None if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds)
                await self._by_hand(customer, probe_at=probe_at)
            case CloseByHand(customer, is_gradual):
                await self._by_hand(customer, is_gradual=is_gradual)
        return step

    async def compare(self) -> None:
        await self._desk.tidy()
        rows = await self._desk.session.fetch("select id, status from execution")
        statuses = {row["id"]: row["status"] for row in rows}
        assert [statuses[id] for id in self._ids] == [call.status for call in self._model.calls.values()]
        assert await self._admissions() == {
            customer: [n for n in self._model.admissions if self._model.calls[n].customer == customer]
            for customer in self._model.breakers
        }
        groups = {f'["{customer}"]': customer for customer in self._model.breakers}
        for row in await self._desk.session.fetch(STATE, list(groups)):
            self._compare_state(groups[row["group_value"]], row)

    def _compare_state(self, customer: str, row: Any) -> None:
        expected = self._model.breakers[customer]
        state = "releasing" if row["is_releasing"] else "open" if row["is_open"] else "closed"
        assert state == expected.state
        room = self._model.room(customer)
        assert row["room"] == (NO_BOUND if room == inf else room)
        recent = [
            failed for at, failed in expected.attempts if at > self._model.clock - self._model.options.within
        ]
        assert row["attempts"] == recent
        if state != "closed":
            assert (row["allowed"], row["passed"]) == (expected.allowed, expected.passed)
        if state == "open":
            probe_in = inf if row["probe_in"] is None else row["probe_in"]
            # The real clock also goes on between two steps.
            assert probe_in == expected.probe_at - self._model.clock or (
                0 <= expected.probe_at - self._model.clock - probe_in < 50
            )

    async def claim_after(self) -> Step:
        """Claim all that is scheduled before an executor looks: only what the interpreter has admitted may start."""
        rows = await self._desk.session.fetch(
            "select id from execution where status = 'scheduled' order by id"
        )
        scheduled = [self._ids.index(row["id"]) for row in rows]
        admitted = set(scheduled) & set(self._model.numbers("scheduled"))
        return await self._claim(scheduled, len(admitted))

    async def _claim(self, numbers: Sequence[int], expected: int) -> Claim:
        # Where priorities differ, the worker may get other executions of its route.
        claimed = [self._ids.index(id) for id in await self._desk.claim(self._named(numbers))]
        assert len(claimed) == expected
        assert set(claimed) <= set(self._model.numbers("scheduled"))
        return Claim(tuple(claimed))

    def _named(self, numbers: Any) -> list[UUID]:
        return [self._ids[n] for n in numbers]

    async def _start(self, customer: str, count: int, priority: int, is_submit: bool) -> None:
        if is_submit:
            ids, _ = await self._desk.submit_group([{"customer": customer}] * count, "shop.charge", priority)
        else:
            ids = await self._desk.request(count, "shop.charge", priority, customer=customer)
            await self._desk.admit(ids)
        self._ids += ids

    async def _end(self, outcomes: Any) -> None:
        ids = self._named(n for n, _ in outcomes)
        rows = await self._desk.session.fetch(ATTEMPTS, ids)
        attempts = {row["id"]: row["attempt"] for row in rows}
        await self._desk.session.fetch(
            FINISH,
            self._desk.worker,
            ids,
            [attempts[id] for id in ids],
            [STATUSES.get(outcome, outcome) for _, outcome in outcomes],
            [ERRORS.get(outcome) for _, outcome in outcomes],
        )

    async def _by_hand(
        self, customer: str, *, is_gradual: bool | None = None, probe_at: datetime | None = None
    ) -> None:
        async with self._desk.database.session().transaction() as tx:
            key = await breakers.lock(tx, "shop.bank", f'{{"customer": "{customer}"}}')
            assert key is not None
            if is_gradual is None:
                await breakers.open_(tx, key, probe_at, "ada", None)
            else:
                await breakers.close(tx, key, is_gradual)

    async def _admissions(self) -> dict[str, list[int]]:
        order: dict[str, list[int]] = {customer: [] for customer in self._model.breakers}
        for row in await self._desk.session.fetch(ADMISSIONS):
            order[row["group_value"][2:-2]].append(self._ids.index(row["execution_id"]))
        return order


async def _skip(desk: Desk, seconds: float) -> None:
    await later(desk, seconds)
    past = "make_interval(secs => $1)"
    for statement in (
        f"update breaker set opened_at = opened_at - {past}, probe_at = probe_at - {past},"
        f" releasing_since = releasing_since - {past} returning 1",
        f"update breaker_attempt set ended_at = ended_at - {past} returning 1",
    ):
        await desk.session.fetch(statement, seconds)


def _limit(chosen: Options) -> Limit:
    return Limit(ref="shop.bank", scope="shop", by="customer", breaker=dict(chosen._asdict()))


@pytest.mark.parametrize("seed", SEEDS)
async def test_breakers_agree_with_the_model(desk: Desk, seed: int) -> None:
    dice = random.Random(seed)
    model = Model(options(dice))
    await desk.open(_limit(model.options))
    player, hurry = Player(desk, model), random.Random(seed)
    for step in steps(dice, model, STEPS):
        model.play(await player.play(step))
        if hurry.random() < 0.15:
            model.play(await player.claim_after())
        await player.compare()
    await desk.sound()


def test_plays_reach_each_rule_of_the_page() -> None:
    """Without this, a fault could stay unseen because no play meets its rule."""
    rules: Counter[str] = Counter()
    for seed in range(40):
        dice = random.Random(seed)
        model = Model(options(dice))
        for step in steps(dice, model, STEPS):
            model.play(step)
        rules += model.rules
    assert set(rules) == RULES
