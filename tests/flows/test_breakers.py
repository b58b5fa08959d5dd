"""Breakers in a whole installation: a service that is down is called until the threshold, and then by probes alone."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from typing import Any

import pytest

from penstock import Breaker, action
from penstock.errors import Conflict, InvalidInput, NotFound
from tests.flows.installation import AS_USED, Installation

CALLS: list[tuple[float, Any, bool]] = []
DOWN: set[Any] = set()


def call(name: Any, order: int) -> None:
    """The service: it notes each call, and fails while it is down."""
    CALLS.append((time.monotonic(), order, name in DOWN))
    if name in DOWN:
        raise ConnectionError("the bank is down")


@action(
    pack="bank",
    breaker={"failures": 3, "of": 5, "within": "1m", "probe": "3s"},
    retry={"max_attempts": 10, "initial_delay": 0.01, "jitter": 0},
)
async def pay(n: int) -> int:
    call("bank", n)
    return n


@action(pack="bank", breaker=Breaker(2, probe="1h", by="host"))
async def fetch(host: str, n: int = 0) -> int:
    call(host, n)
    return n


@pytest.fixture(autouse=True)
def fresh() -> None:
    CALLS.clear()
    DOWN.clear()


async def begin(house: Installation, **settings: Any) -> None:
    await house.start(pay, fetch, **{**AS_USED, **settings})


async def opened(house: Installation) -> None:
    await house.until("select from breaker having count(*) = $1", 1)


async def test_breaker_opens_probes_and_releases_in_order(house: Installation) -> None:
    await begin(house, concurrency=1)
    DOWN.add("bank")
    failing = await house.client.start_many(pay, [{"n": n} for n in range(3)])
    await opened(house)
    ids = await house.client.start_many(pay, [{"n": n} for n in range(10, 40)])
    await asyncio.sleep(0.5)
    assert len(CALLS) == 3
    async with asyncio.timeout(
        30
    ):  # on a busy machine the services may be silent for a while, which is told first
        while (why := await house.client.why(ids[0])).because == "outage":
            await asyncio.sleep(0.2)
    assert why.because == "breaker"
    assert why.says.startswith("Waits because the breaker of bank.pay is open since ")
    assert "3 of the last 3 attempts failed." in why.says
    assert "The next probe of the breaker starts in " in why.says
    async with asyncio.timeout(30):
        while len(CALLS) < 5:
            await asyncio.sleep(0.05)
    DOWN.clear()
    for id in [*failing, *ids]:
        await house.client.result(id, timeout=60)
    failed = [entry for entry in CALLS if entry[2]]
    assert 5 <= len(failed) <= 7
    gaps = [late[0] - early[0] for early, late in pairwise(failed[2:])]
    assert all(gap >= 2.8 for gap in gaps)
    rows = await house.rows("select execution_id from admission where attempt = 1 order by seq")
    assert [row["execution_id"] for row in rows if row["execution_id"] in set(ids)] == ids
    assert await house.rows("select from breaker where releasing_since is null") == []
    await house.quiet()
    await house.sound()


async def test_breaker_of_a_host_leaves_others_alone(house: Installation) -> None:
    await begin(house)
    DOWN.add("a")
    ids = await house.client.start_many(fetch, [{"host": "a"}] * 2)
    await opened(house)
    [late] = await house.client.start_many(fetch, [{"host": "a", "n": 7}])
    assert await house.client.run(fetch, {"host": "b", "n": 3}, timeout=20) == 3
    states = {row.group_value: row for row in await house.client.breakers.all("bank.fetch")}
    assert (states['["a"]'].state, states['["a"]'].failed, states['["b"]'].state) == ("open", 2, "closed")
    DOWN.clear()
    with pytest.raises(InvalidInput, match="is grouped by host"):
        await house.client.breakers.close("bank.fetch")
    await house.client.breakers.close("bank.fetch", {"host": "a"}, at_once=True)
    assert await house.client.result(late, timeout=20) == 7
    assert len(ids) == 2
    await house.quiet()
    await house.sound()


async def test_breaker_is_opened_and_closed_by_hand(house: Installation) -> None:
    await begin(house)
    with pytest.raises(Conflict):
        await house.client.breakers.close("bank.pay")
    with pytest.raises(NotFound):
        await house.client.breakers.open("bank.missing", by="ada")
    await house.client.breakers.open("bank.pay", by="ada", reason="the bank moves")
    ids = await house.client.start_many(pay, [{"n": n} for n in range(20)])
    await house.until("select from waiter having count(*) = $1", 20)
    why = await house.client.why(ids[0])
    assert "ada opened it (the bank moves)." in why.says
    assert "Close the breaker with: penstock breaker close bank.pay" in why.says
    assert CALLS == []
    await house.client.breakers.close("bank.pay")
    assert [await house.client.result(id, timeout=30) for id in ids] == list(range(20))
    await house.until("select from breaker having count(*) = $1", 0)
    await house.quiet()
    await house.sound()
