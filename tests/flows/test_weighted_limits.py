"""Limits with costs in a whole installation: attempts report their true costs, wherever they run."""

from __future__ import annotations

from uuid import UUID

import pytest

from penstock import Limit, action, current
from penstock.errors import ExecutionFailed
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

LIMIT = Limit(100, per="1h", cost="{{ parameters.tokens }}", unit="tokens")


@action(pack="texts", limits=[LIMIT])
async def ask(tokens: float, used: float | None = None) -> float | None:
    if used is not None:
        current().cost(tokens=used)
    return used


@action(pack="texts", executor="process", limits=[LIMIT])
def ask_in_a_process(tokens: float, used: float) -> str:
    current().cost(7, tokens=used)
    return "x" * 1000


@action(pack="texts", limits=[LIMIT], retry={"max_attempts": 2, "initial_delay": 0})
async def fail_once(tokens: float) -> None:
    current().cost(tokens=current().attempt)
    if current().attempt == 1:
        raise RuntimeError("the model is busy")


async def costs(house: Installation, id: UUID) -> list[float]:
    rows = await house.rows("select cost from admission where execution_id = $1 order by attempt", id)
    return [float(row["cost"]) for row in rows]


async def test_the_true_cost_counts_from_the_end_of_an_attempt(house: Installation) -> None:
    await house.start(ask)
    first = await house.client.start(ask, {"tokens": 60, "used": 10.5})
    assert await house.client.result(first, timeout=20) == 10.5
    second = await house.client.start(ask, {"tokens": 60})
    assert await house.client.result(second, timeout=20) is None
    assert (await costs(house, first), await costs(house, second)) == ([10.5], [60])
    await house.quiet()
    await house.sound()


async def test_a_settled_cost_lets_the_next_start(house: Installation) -> None:
    await house.start(ask)
    ids = await house.client.start_many(ask, [{"tokens": 60, "used": 20} for _ in range(3)])
    assert [await house.client.result(id, timeout=30) for id in ids] == [20, 20, 20]
    await house.quiet()
    await house.sound()


async def test_a_child_process_reports_its_cost(house: Installation) -> None:
    await house.start(ask_in_a_process)
    id = await house.client.start(ask_in_a_process, {"tokens": 100, "used": 0.1})
    assert await house.client.result(id, timeout=30) == "x" * 1000
    assert await costs(house, id) == [0.1]


async def test_each_attempt_has_its_own_cost(house: Installation) -> None:
    await house.start(fail_once)
    id = await house.client.start(fail_once, {"tokens": 40})
    await house.client.result(id, timeout=20)
    assert await costs(house, id) == [1, 2]


async def test_a_start_above_the_limit_is_refused(house: Installation) -> None:
    await house.start(ask)
    id = await house.client.start(ask, {"tokens": 101})
    with pytest.raises(
        ExecutionFailed, match=r"needs 101 tokens, and the limit texts.ask.all_tokens allows 100"
    ):
        await house.client.result(id, timeout=20)
