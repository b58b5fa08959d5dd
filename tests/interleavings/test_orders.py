"""Small races in every order that matters, one statement at a time, on a real database: nothing is ever wrong.

`python -m tests.interleavings CASE ORDER` plays one of them again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.interleavings.cases import CASES
from tests.interleavings.explore import Found, Played, explore, in_lanes, theatre
from tests.servers.postgres import Postgres

NAMES = [pytest.param(name, id=name.replace(" ", "-").replace(",", "")) for name in CASES]
ORDERS = 30
"""Of each case, of which some have no more than a dozen. `make chaos` plays ten times as many."""
WANTED = 1000
LANES = 2


def asked_for(request: pytest.FixtureRequest) -> list[str]:
    """The cases of which a test of this module is run."""
    items_here = [
        item
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.module is request.module
    ]
    names = {item.callspec.params["name"] if hasattr(item, "callspec") else None for item in items_here}
    return [name for name in CASES if name in names or None in names]


@pytest.fixture(scope="module")
async def played(
    request: pytest.FixtureRequest, postgres_server: Postgres, gated: str
) -> AsyncIterator[Played]:
    """Return the played orders of all cases."""

    async def one(name: str) -> Found:
        async with theatre(postgres_server, gated, CASES[name]) as (scene, stage):
            return await explore(scene, stage, CASES[name], ORDERS, seed=1)

    async with in_lanes(LANES, asked_for(request), one) as playing:
        yield playing


@pytest.mark.parametrize("name", NAMES)
async def test_every_order_of_the_race_ends_well(played: Played, name: str) -> None:
    result = await played[name]
    assert not result.wrong, result.wrong[0]
    assert len(result.seen) >= 2


async def test_these_were_a_thousand_orders(played: Played) -> None:
    assert sum([len((await found).seen) for found in played.values()]) >= WANTED
