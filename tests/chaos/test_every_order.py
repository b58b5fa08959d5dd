"""Ten thousand orders of the small races, and a thousand in which statements fail: nothing is ever wrong."""

from __future__ import annotations

import random

import pytest

from tests.interleavings.cases import CASES
from tests.interleavings.explore import explore, play, theatre
from tests.interleavings.test_orders import FAULTY, NAMES, ORDERS
from tests.servers.postgres import Postgres


@pytest.mark.parametrize("name", NAMES)
async def test_whoever_comes_first_all_ends_well(
    postgres_server: Postgres, template: str, name: str, seed: int
) -> None:
    async with theatre(postgres_server, template, CASES[name]) as (scene, stage):
        found = await explore(scene, stage, CASES[name], 128 * ORDERS, seed)
        assert not found.wrong, f"seed {seed}: {found.wrong[0]}"
        for number in range(20 * FAULTY):
            await play(scene, stage, CASES[name], "", random.Random(f"{name} {seed} {number}"), faults=0.1)
