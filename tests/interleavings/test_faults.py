"""The races of test_orders.py where statements fail and connections are lost, and flows over a broker that drops, repeats,
delays, reorders and loses messages. Nothing is ever wrong. `python -m tests.interleavings CASE --seed SEED FAULTS` plays one of
them again."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.interleavings.cases import CASES, MESSAGES
from tests.interleavings.explore import Found, Played, draw, in_lanes, theatre
from tests.interleavings.test_orders import LANES, NAMES, asked_for
from tests.servers.postgres import Postgres

FAULTY = 2
"""Orders of each case in which a tenth of the steps goes wrong; `make chaos` plays 20 times as many."""
DRAWN = 4
"""Orders of each flow over such a broker; `make chaos` plays 30 times as many."""


@pytest.fixture(scope="module")
async def with_faults(
    request: pytest.FixtureRequest, postgres_server: Postgres, gated: str
) -> AsyncIterator[Played]:
    async def one(name: str) -> Found:
        async with theatre(postgres_server, gated, CASES[name]) as (scene, stage):
            return await draw(scene, stage, CASES[name], range(FAULTY), faults=0.1)

    async with in_lanes(3 * LANES, asked_for(request), one) as playing:  # they wait more than they work
        yield playing


@pytest.mark.parametrize("name", NAMES)
async def test_nor_is_it_wrong_where_statements_fail_and_connections_are_lost(
    with_faults: Played, name: str
) -> None:
    result = await with_faults[name]
    assert not result.wrong, result.wrong[0]


@pytest.fixture(scope="module")
async def messages(postgres_server: Postgres, gated: str) -> AsyncIterator[Played]:
    async def one(name: str) -> Found:
        async with theatre(postgres_server, gated, MESSAGES[name]) as (scene, stage):
            result = await draw(scene, stage, MESSAGES[name], range(DRAWN))
            return (
                result if result.wrong else await draw(scene, stage, MESSAGES[name], ["faults"], faults=0.05)
            )

    async with in_lanes(LANES, MESSAGES, one) as playing:
        yield playing


@pytest.mark.parametrize("name", MESSAGES)
async def test_nor_where_a_broker_drops_repeats_delays_and_loses_messages(
    messages: Played, name: str
) -> None:
    result = await messages[name]
    assert not result.wrong, result.wrong[0]
