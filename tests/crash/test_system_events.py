"""kill -9 of executors and workers while executions fail: the history has one move to a bad end for each event, and no other."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from penstock import Rule
from tests.crash.processes import Fleet, Started
from tests.flows import shop
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

STARTS = int(os.environ.get("PENSTOCK_FAILING_STARTS", "150"))
WORK: tuple[tuple[str, dict[str, Any]], ...] = (
    ("shop.hopeless", {}),
    ("shop.flaky", {"failures": 9}),
    ("shop.flaky", {"failures": 1}),
    ("shop.slow", {}),
    ("shop.charge", {"order": 1}),
    ("shop.wait_for", {"seconds": 0.5}),
)
MOVES = "select execution_id::text as id from history where new in ('failed', 'timeout', 'abandoned')"
PAYLOADS = "select payload::text as payload from event where trigger = $1"
LOST = "select execution_id::text as id, count(*) as count from attempt where outcome = 'lost' group by 1"
STARTED = """
select e.id::text as id from execution e join payload p on p.execution_id = e.id where p.origin ->> 'rule' = $1
"""
# What the first rule starts fails, too: a loop would not end.
RULES = (
    Rule("alerts.failed", trigger="penstock.execution.failed", action="shop.flaky", params={"failures": 9}),
    Rule("alerts.lost", trigger="penstock.worker.lost", action="shop.charge", params={"order": 1}),
)


async def test_each_bad_end_has_one_event_while_services_are_killed(
    house: Installation, database: str, broker: str | None, tmp_path: Path
) -> None:
    await house.apply(*shop.ALL, *RULES)
    dice = random.Random(7)
    done = asyncio.Event()

    async def kill(fleet: Fleet, services: list[tuple[Callable[[], Started], Started]]) -> None:
        while not done.is_set():
            await asyncio.sleep(dice.uniform(0.3, 1.0))
            start, process = services.pop(dice.randrange(len(services)))
            fleet.kill(process)
            services.append((start, start()))

    with Fleet(database, broker, tmp_path / "services.log") as fleet:
        services = [(start, start()) for start in (fleet.executor, fleet.worker) for _ in range(2)]
        await house.until("select from process where kind = 'worker' having count(*) = 2", seconds=90)
        # One loss of work for certain. Later ones are up to chance.
        held = await house.client.start(shop.wait_for, {"seconds": 10})
        await house.until("select from execution where id = $1 and status = 'running'", held, seconds=90)
        for start, process in services[2:]:
            fleet.kill(process)
            services.append((start, start()))
        del services[2:4]
        killing = asyncio.create_task(kill(fleet, services))
        for _ in range(STARTS):
            await house.client.start(*dice.choice(WORK))
            await asyncio.sleep(dice.uniform(0, 0.05))
        done.set()
        await killing
        await house.until(
            "select 1 where not exists (select from unmatched) and not exists (select from outbox) "
            "and not exists (select from execution where finished_at is null)",
            seconds=180,
        )
    assert fleet.killed > 5

    async def ids(sql: str, *args: Any) -> list[str]:
        return [row["id"] for row in await house.rows(sql, *args)]

    async def payloads(kind: str) -> list[Any]:
        return [orjson.loads(row["payload"]) for row in await house.rows(PAYLOADS, f"penstock.{kind}")]

    by_failures, moves = await ids(STARTED, "alerts.failed"), await ids(MOVES)
    raised = Counter(payload["execution"] for payload in await payloads("execution.failed"))
    assert raised == Counter(set(moves) - set(by_failures))
    assert len(moves) == len(set(moves))
    assert len(by_failures) == len(raised) > STARTS // 6

    lost = await payloads("worker.lost")
    assert len({payload["worker"] for payload in lost}) == len(lost) > 0
    assert len(await ids(STARTED, "alerts.lost")) == len(lost)
    attempts = {row["id"]: row["count"] for row in await house.rows(LOST)}
    named = Counter(id for payload in lost for id in payload["executions"])
    assert all(attempts[id] >= count for id, count in named.items())
    await house.sound()
