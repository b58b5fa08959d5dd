"""kill -9 of workers with batches: an item is neither lost nor in two results. The oracle compares the rows with what each call
noted in a file, and shares no code with the worker.

`PENSTOCK_TEST_BATCH_ITEMS=20000` makes the long test longer: one kill for every 650 items.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from tests.crash import batch_work
from tests.crash.processes import Fleet, Started
from tests.flows.installation import Installation

ITEMS = int(os.environ.get("PENSTOCK_TEST_BATCH_ITEMS", "2000"))
EACH = 650
"""Items for each kill."""
SIZE, COLOURS = 50, 3
TURNS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20)
"""Turns of the event loop after which a worker dies: 0 is in the call."""

ENDS = """
select e.id, e.status, e.attempt, e.recoveries, r.result::text as result, (p.params ->> 'n')::integer as n,
    coalesce(h.completions, 0) as completions, (select count(*) from attempt a where a.execution_id = e.id) as others
from execution e join payload p on p.execution_id = e.id left join result r on r.execution_id = e.id
left join (
    select execution_id, count(*) as completions from history where new = 'completed' group by 1) h on h.execution_id = e.id
"""


@dataclass
class Oracle:
    """The notes of the calls: the items of each call, and the calls of each item."""

    calls: dict[str, list[tuple[UUID, int, str]]]
    of_item: dict[tuple[UUID, int], list[str]]

    @classmethod
    def read(cls, path: Path) -> Oracle:
        oracle = cls(defaultdict(list), defaultdict(list))
        for line in path.read_text().splitlines():
            call, id, attempt, colour = line.split()
            oracle.calls[call].append((UUID(id), int(attempt), colour))
            oracle.of_item[UUID(id), int(attempt)].append(call)
        return oracle

    def faults(self, rows: list[dict[str, Any]]) -> Iterator[str]:
        """Yield a sentence for each broken promise."""
        for call, items in self.calls.items():
            if len(items) > SIZE or len({id for id, _, _ in items}) < len(items):
                yield f"call {call} has {len(items)} items, or one of them twice"
            if len({colour for _, _, colour in items}) > 1:
                yield f"call {call} mixes groups"
        for (id, attempt), calls in self.of_item.items():
            if len(calls) > 1:
                yield f"attempt {attempt} of {id} was in {len(calls)} calls"
        for row in rows:
            id, result = row["id"], orjson.loads(row["result"] or "null")
            if (row["status"], row["completions"]) != ("completed", 1):
                yield f"{id} is {row['status']}, with {row['completions']} completions"
            elif row["attempt"] != 1 + row["others"]:
                yield f"{id} had {row['attempt']} attempts, of which {row['others']} did not complete"
            elif (result["double"], result["execution"]) != (2 * row["n"], str(id)):
                yield f"{id} has the result of another item: {result}"
            elif self.of_item.get((id, row["attempt"])) != [result["call"]]:
                yield f"{id} has a result of a call that did not have its attempt {row['attempt']}"


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    path = tmp_path / "calls"
    path.touch()
    return path


class Workers:
    """An executor, and workers with batches that are replaced when they are killed."""

    def __init__(self, fleet: Fleet, calls: Path) -> None:
        self._fleet = fleet
        fleet.environment[batch_work.CALLS] = str(calls)
        fleet.executor()
        self.alive: list[tuple[Started, float]] = []

    def start(self, concurrency: int = 3) -> Started:
        process = self._fleet.start(
            "worker", "--module", "tests.crash.batch_work", "--concurrency", str(concurrency)
        )
        self.alive.append((process, time.monotonic()))
        return process

    async def kill_one(self, draw: random.Random, age: float = 2.0) -> None:
        """kill -9 a worker that has had the time to begin, and start another one."""
        while not (grown := [pair for pair in self.alive if time.monotonic() - pair[1] > age]):
            await asyncio.sleep(0.05)
        victim = draw.choice(grown)
        self.alive.remove(victim)
        self._fleet.kill(victim[0])
        self.start()

    def replace_dead(self) -> int:
        """Start another worker for each that killed itself. Return how many did."""
        dead = [pair for pair in self.alive if pair[0].poll() is not None]
        for pair in dead:
            self.alive.remove(pair)
            self._fleet.alive.remove(pair[0])
            self.start()
        return len(dead)


async def judge(house: Installation, calls: Path, seconds: float = 120) -> None:
    await house.until(
        "select 1 where not exists (select from execution where finished_at is null)", seconds=seconds
    )
    await house.rows("analyze")  # the statistics may be those of empty tables
    faults = list(Oracle.read(calls).faults([dict(row) for row in await house.rows(ENDS)]))
    assert not faults, "\n".join(faults[:20])
    await house.sound()


async def test_items_of_killed_workers_have_one_result_each(
    house: Installation,
    database: str,
    broker: str | None,
    tmp_path: Path,
    calls: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Workers are killed whenever it happens: before calls, in calls, and between a call and the commit of its ends."""
    await house.apply(*batch_work.ALL)
    draw, kills = random.Random(ITEMS), max(3, ITEMS // EACH)
    with Fleet(database, broker, tmp_path / "services.log") as fleet:
        workers = Workers(fleet, calls)
        for _ in range(3):
            workers.start()
        share = -(-ITEMS // kills)
        for kill in range(kills):
            numbers = range(kill * share, min(ITEMS, (kill + 1) * share))
            rows = [{"n": n, "colour": n % COLOURS} for n in numbers]
            await house.client.start_many(batch_work.double, rows)
            await asyncio.sleep(draw.uniform(0, 0.4))
            await workers.kill_one(draw)
        await judge(house, calls, seconds=60 + ITEMS / 50)
    assert fleet.killed == kills
    oracle = Oracle.read(calls)
    [row] = await house.rows(
        "select count(*) as items, sum(recoveries) as lost, sum(attempt) as attempts from execution"
    )
    assert row["items"] == ITEMS
    with capsys.disabled():
        print(
            f"\n{ITEMS} items, {kills} kills: {len(oracle.calls)} calls of {len(oracle.of_item) / len(oracle.calls):.1f} items, "
            f"{row['attempts']} attempts, {row['lost']} lost with their workers, each item one result"
        )


@pytest.mark.parametrize("turns", TURNS)
async def test_worker_dies_at_each_step_after_a_call(
    house: Installation, database: str, broker: str | None, tmp_path: Path, calls: Path, turns: int
) -> None:
    await house.apply(*batch_work.ALL)
    with Fleet(database, broker, tmp_path / "services.log") as fleet:
        workers = Workers(fleet, calls)
        workers.start(concurrency=1)
        rows = [{"n": n, "dies": turns if n == 7 else None} for n in range(40)]
        await house.client.start_many(batch_work.double, rows)
        died = 0
        async with asyncio.timeout(60):
            while not died:
                await asyncio.sleep(0.05)
                died = workers.replace_dead()
        await judge(house, calls)


async def test_worker_dies_with_an_unfilled_batch(
    house: Installation, database: str, broker: str | None, tmp_path: Path, calls: Path
) -> None:
    await house.apply(*batch_work.ALL)
    with Fleet(database, broker, tmp_path / "services.log") as fleet:
        workers = Workers(fleet, calls)
        first = workers.start()
        ids = await house.client.start_many(batch_work.patient, [{"n": n} for n in range(49)])
        await house.until("select from execution where status = 'running' having count(*) = 49")
        fleet.kill(first)
        workers.alive.clear()
        workers.start()
        await house.until(
            "select from execution where status = 'running' and attempt = 2 having count(*) = 49", seconds=60
        )
        assert calls.read_text() == ""
        ids += await house.client.start_many(batch_work.patient, [{"n": 49}])
        assert [await house.client.result(id, timeout=60) for id in ids] == [2 * n for n in range(50)]
    rows = await house.rows("select recoveries from execution where attempt = 2")
    assert {row["recoveries"] for row in rows} == {1}
    [call] = Oracle.read(calls).calls.values()
    assert sorted(id for id, _, _ in call) == sorted(ids)
    await house.sound()


async def test_frozen_worker_changes_nothing_when_it_wakes_up(
    house: Installation, database: str, broker: str | None, tmp_path: Path, calls: Path
) -> None:
    """While it stands still it is declared dead, and another worker calls the function with its items."""
    await house.apply(*batch_work.ALL)
    with Fleet(database, broker, tmp_path / "services.log") as fleet:
        workers = Workers(fleet, calls)
        frozen = workers.start()
        ids = await house.client.start_many(batch_work.patient, [{"n": n} for n in range(49)])
        await house.until("select from execution where status = 'running' having count(*) = 49")
        fleet.kill(frozen, signal.SIGSTOP)
        workers.start()
        ids += await house.client.start_many(batch_work.patient, [{"n": 49}])
        assert [await house.client.result(id, timeout=60) for id in ids] == [2 * n for n in range(50)]
        history = await house.rows("select count(*) as n from history")
        fleet.kill(frozen, signal.SIGCONT)
        await asyncio.sleep(1.5)
        assert await house.rows("select count(*) as n from history") == history
    await house.sound()
