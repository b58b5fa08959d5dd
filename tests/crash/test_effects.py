"""kill -9 of workers whose actions publish and start: what is transactional is there exactly with the ends."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

from tests.crash.processes import Fleet
from tests.flows import inside
from tests.flows.installation import Installation

ATTEMPTS = int(os.environ.get("PENSTOCK_TEST_EFFECTS", "300"))
"""The executions whose actions publish and start. 10,000 take some minutes."""
ENDED = """
select (p.params ->> 'n')::integer as n, e.status, e.attempt from execution e join payload p on p.execution_id = e.id
join definition d on d.id = e.definition_id where d.ref = 'inside.publishes_and_starts'
"""
EVENTS = "select (payload ->> 'n')::integer as n from event"
DOUBLES = """
select (p.params ->> 'n')::integer as n from execution e join payload p on p.execution_id = e.id
join definition d on d.id = e.definition_id where d.ref = 'inside.double'
"""


async def test_effects_come_with_the_ends_beside_kills(
    house: Installation, database: str, broker: str | None, tmp_path: Path
) -> None:
    await house.apply(*inside.ALL)
    draw = random.Random(11)
    with Fleet(database, broker, tmp_path / "services.log") as fleet:
        fleet.executor()
        workers = [
            fleet.start("worker", "--module", "tests.flows.inside", "--concurrency", "20") for _ in range(2)
        ]
        await house.client.start_many("inside.publishes_and_starts", [{"n": n} for n in range(ATTEMPTS)])
        open_ones = "select 1 from execution where finished_at is null limit 1"
        while await house.rows(open_ones) and fleet.killed < 30:
            await asyncio.sleep(0.6)
            victim = workers.pop(draw.randrange(2))
            fleet.kill(victim)
            workers.append(fleet.start("worker", "--module", "tests.flows.inside", "--concurrency", "20"))
        await house.quiet(seconds=120)
    ended = await house.rows(ENDED)
    completed = sorted(row["n"] for row in ended if row["status"] == "completed")
    assert len(ended) == ATTEMPTS
    assert any(row["attempt"] > 1 for row in ended)
    assert fleet.killed > 0
    assert sorted(row["n"] for row in await house.rows(EVENTS)) == completed
    doubles = sorted(row["n"] for row in await house.rows(DOUBLES))
    assert [n for n in doubles if n < 1_000_000] == completed
    keyed = [n - 1_000_000 for n in doubles if n >= 1_000_000]
    assert len(keyed) == len(set(keyed))
    assert set(keyed) >= set(completed)
    await house.sound()
