"""Small races in every order that matters, one statement at a time, on a real database: nothing is ever wrong.

`python -m tests.interleavings CASE ORDER` plays one of them again.
"""

from __future__ import annotations

import random

import pytest

from tests.interleavings.cases import CASES
from tests.interleavings.explore import explore, play, theatre
from tests.servers.postgres import Postgres

NAMES = [pytest.param(name, id=name.replace(" ", "-").replace(",", "")) for name in CASES]
ORDERS = 3
"""Of each case. `make chaos` plays 128 times as many."""
FAULTY = 2
"""Orders in which a tenth of the steps goes wrong, of the cases about a claim, its end, and one limit; `make chaos` plays
20 times as many, of all."""
WITH_FAULTS = (
    *("one message twice", "one message twice under a limit", "one envelope twice", "finish and sweep"),
    *(
        "finish and cancel",
        "retry and cancel",
        "two sweeps and a beat",
        "two admit at once",
        "finish and admit",
    ),
    *("finish and cancel of who waits", "cancel of who was admitted and admit", "two finish and one admits"),
    "the limit changes",
)


@pytest.mark.parametrize("name", NAMES)
async def test_whoever_comes_first_all_ends_well(postgres_server: Postgres, template: str, name: str) -> None:
    async with theatre(postgres_server, template, CASES[name]) as (scene, stage):
        found = await explore(scene, stage, CASES[name], ORDERS, seed=1)
    assert not found.wrong, found.wrong[0]
    assert len(found.seen) >= 2


@pytest.mark.parametrize("name", WITH_FAULTS)
async def test_nor_is_it_wrong_where_statements_fail_and_connections_are_lost(
    postgres_server: Postgres, template: str, name: str
) -> None:
    async with theatre(postgres_server, template, CASES[name]) as (scene, stage):
        for seed in range(FAULTY):
            await play(scene, stage, CASES[name], "", random.Random(f"{name} {seed}"), faults=0.1)
