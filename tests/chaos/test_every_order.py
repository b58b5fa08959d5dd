"""Ten thousand orders of the small races, and a thousand in which statements fail: nothing is ever wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.interleavings.cases import CASES, MESSAGES
from tests.interleavings.explore import Found, Played, draw, explore, in_lanes, theatre
from tests.interleavings.test_faults import DRAWN, FAULTY
from tests.interleavings.test_orders import LANES, NAMES, ORDERS, WANTED, asked_for
from tests.servers.postgres import Postgres


@pytest.fixture(scope="module")
async def played(
    request: pytest.FixtureRequest, postgres_server: Postgres, gated: str, seed: int
) -> AsyncIterator[Played]:
    async def one(name: str) -> Found:
        async with theatre(postgres_server, gated, CASES[name]) as (scene, stage):
            return await explore(scene, stage, CASES[name], 18 * ORDERS, seed)

    async with in_lanes(LANES, asked_for(request), one) as playing:
        yield playing


@pytest.mark.parametrize("name", NAMES)
async def test_every_order_of_the_race_ends_well(played: Played, name: str, seed: int) -> None:
    orders = await played[name]
    assert not orders.wrong, f"seed {seed}: {orders.wrong[0]}"


async def test_these_were_ten_thousand_orders(played: Played) -> None:
    assert sum([len((await found).seen) for found in played.values()]) >= 10 * WANTED


@pytest.mark.parametrize("name", NAMES)
async def test_nor_where_statements_fail_and_connections_are_lost(
    postgres_server: Postgres, gated: str, name: str, seed: int
) -> None:
    async with theatre(postgres_server, gated, CASES[name]) as (scene, stage):
        seeds = [f"{seed} {number}" for number in range(20 * FAULTY)]
        orders = await draw(scene, stage, CASES[name], seeds, faults=0.1)
    assert not orders.wrong, orders.wrong[0]


@pytest.mark.parametrize("faults", [0.0, 0.05])
@pytest.mark.parametrize("name", MESSAGES)
async def test_nor_where_a_broker_drops_repeats_delays_and_loses_messages(
    postgres_server: Postgres, gated: str, name: str, seed: int, faults: float
) -> None:
    async with theatre(postgres_server, gated, MESSAGES[name]) as (scene, stage):
        seeds = [f"{seed} {number}" for number in range(30 * DRAWN)]
        orders = await draw(scene, stage, MESSAGES[name], seeds, faults)
    assert not orders.wrong, orders.wrong[0]
