"""A scheduler that shuffles the order in which tasks run, for tests of code that waits in several places at once.

asyncio runs ready tasks in the order in which they became ready. A test can rely on that order without saying so, and then
fail on a slow machine only. Under the fixture `shuffled_tasks`, ready tasks run in a random order, and a random part of them
runs one round later. Tasks of libraries keep their order: they may rely on asyncio's. PENSTOCK_TEST_SEED repeats an order;
a failed test prints its seed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections import deque
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

OUR_CODE = tuple(f"{Path(__file__).parents[1] / part}/" for part in ("common", "services", "extras", "tests"))
DELIVERY = "_on_message"
"""The coroutine of one delivery: aiormq makes a task of each, in the order in which the broker sent them."""
LATER = 0.2
"""The share of ready tasks that a round leaves for the next one."""


@pytest.fixture(autouse=True)
async def shuffled_tasks(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", random.randrange(2**32)))
    request.node.add_report_section("call", "order of tasks", f"PENSTOCK_TEST_SEED={seed}")
    with shuffled(asyncio.get_running_loop(), random.Random(seed)):
        yield


@contextlib.contextmanager
def shuffled(loop: Any, chance: random.Random) -> Iterator[None]:
    """Shuffle the ready tasks of the loop in each of its rounds. Other callbacks keep their order and their places."""
    run_once = loop._run_once

    def run_shuffled() -> None:
        later = _shuffle(loop._ready, chance)
        run_once()
        loop._ready.extend(later)

    loop._run_once = run_shuffled
    try:
        yield
    finally:
        del loop._run_once


def _shuffle(ready: deque[Any], chance: random.Random) -> list[Any]:
    """Put the tasks among the ready callbacks into a random order. Take out and return those that run a round later.

    Other threads may append meanwhile: places from the left stay what they are.
    """
    places = [place for place, handle in enumerate(list(ready)) if _runs_task(handle)]
    if len(places) < 2:
        return []
    handles = [ready[place] for place in places]
    chance.shuffle(handles)
    for place, handle in zip(places, handles, strict=True):
        ready[place] = handle
    # The loop waits for input where nothing is ready: the first one always runs.
    delayed = [place for place in places[1:] if chance.random() < LATER]
    later = [ready[place] for place in delayed]
    for place in reversed(delayed):
        del ready[place]
    return later


def _runs_task(handle: Any) -> bool:
    task = getattr(handle._callback, "__self__", None)
    if not isinstance(task, asyncio.Task):
        return False
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and code.co_filename.startswith(OUR_CODE) and code.co_name != DELIVERY
