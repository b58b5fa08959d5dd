"""The shuffling scheduler changes the order of our tasks, and loses none of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.shuffled_tasks import shuffled


async def orders(runs: int, chance: random.Random) -> list[list[int]]:
    """Return the order in which eight tasks end, for each run."""

    async def note(number: int, ends: list[int]) -> None:
        await asyncio.sleep(0)
        ends.append(number)

    seen: list[list[int]] = []
    with shuffled(asyncio.get_running_loop(), chance):
        for _ in range(runs):
            ends: list[int] = []
            await asyncio.gather(*(note(number, ends) for number in range(8)))
            seen.append(ends)
    return seen


def run_alone(coroutine: Coroutine[Any, Any, list[list[int]]]) -> list[list[int]]:
    """Run the coroutine on a loop of its own, beside the loop of the tests."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


async def test_shuffled_loop_runs_each_task_in_random_order() -> None:
    seen = await orders(50, random.Random(1))

    assert all(sorted(order) == list(range(8)) for order in seen)
    assert len({tuple(order) for order in seen}) > 40


def test_shuffled_loop_repeats_an_order_by_its_seed() -> None:
    once, again = (run_alone(orders(5, random.Random(7))) for _ in range(2))
    assert once == again


async def test_loop_keeps_order_after_the_fixture() -> None:
    await orders(1, random.Random(1))
    ends: list[int] = []

    async def note(number: int) -> None:
        ends.append(number)

    await asyncio.gather(*(note(number) for number in range(8)))
    assert ends == list(range(8))
