"""kill -9 of everything in turn, under load: nothing is lost and nothing is done twice."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
from pathlib import Path

import pytest

from tests.crash.processes import Fleet
from tests.flows import shop
from tests.flows.installation import Installation
from tests.servers.process import free_port


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "services.log"


async def test_executors_and_workers_killed_in_turn_lose_nothing(
    house: Installation,
    database: str,
    broker: str | None,
    log: Path,
) -> None:
    await house.apply(*shop.ALL, shop.sturdy)
    draw = random.Random(7)
    with Fleet(database, broker, log) as fleet:
        roles = {fleet.executor(): "executor", fleet.executor(): "executor"}
        roles |= {fleet.worker(): "worker", fleet.worker(): "worker"}
        for batch in range(12):
            await house.client.start_many("shop.sturdy", [{"n": batch * 50 + n} for n in range(50)])
            await asyncio.sleep(0.3)
            victim = draw.choice(fleet.alive)
            role = roles.pop(victim)
            fleet.kill(victim)
            roles[fleet.executor() if role == "executor" else fleet.worker()] = role
        await house.until(
            "select 1 where not exists (select from execution where finished_at is null)", seconds=60
        )
    assert fleet.killed == 12
    assert await house.statuses() == {"completed": 600}, log.read_text()[-3000:]
    wrong = await house.rows(
        "select 1 from execution e join payload p on p.execution_id = e.id join result r on r.execution_id = e.id "
        "where (r.result ->> 'n')::int <> (p.params ->> 'n')::int"
    )
    assert not wrong
    await house.sound()


async def test_a_frozen_worker_that_wakes_up_changes_nothing(
    house: Installation,
    database: str,
    broker: str | None,
    log: Path,
) -> None:
    await house.apply(*shop.ALL, shop.sturdy)
    with Fleet(database, broker, log) as fleet:
        fleet.executor()
        frozen = fleet.worker()
        ids = await house.client.start_many("shop.wait_for", [{"seconds": 1.0}] * 5)
        await house.until("select 1 from execution where status = 'running' having count(*) = 5")
        fleet.kill(frozen, signal.SIGSTOP)
        fleet.worker()
        await house.until(
            "select 1 from execution where status = 'completed' having count(*) = 5", seconds=30
        )
        history = await house.rows("select count(*) as n from history")
        fleet.kill(frozen, signal.SIGCONT)
        await asyncio.sleep(1.5)
        assert await house.rows("select count(*) as n from history") == history
    rows = await house.rows("select attempt, recoveries from execution where id = any($1::uuid[])", ids)
    assert {(row["attempt"], row["recoveries"]) for row in rows} == {(2, 1)}
    await house.sound()


async def test_a_worker_asked_to_stop_finishes_or_hands_back_its_work(
    house: Installation,
    database: str,
    broker: str | None,
    log: Path,
) -> None:
    await house.apply(*shop.ALL)
    with Fleet(database, broker, log, grace=1.0) as fleet:
        fleet.executor()
        leaving = fleet.worker()
        await house.client.start_many("shop.wait_for", [{"seconds": s} for s in (0.5, 0.5, 4.0)])
        await house.until("select 1 from execution where status = 'running' having count(*) = 3")
        leaving.send_signal(signal.SIGTERM)
        await asyncio.to_thread(leaving.wait, 15)
        fleet.alive.remove(leaving)
        assert leaving.returncode == 0
        assert (await house.statuses()).get("completed") == 2
        fleet.worker()
        await house.until(
            "select 1 from execution where status = 'completed' having count(*) = 3", seconds=30
        )
    rows = await house.rows("select recoveries from execution")
    assert {row["recoveries"] for row in rows} == {0}
    await house.sound()


async def test_a_second_signal_ends_a_worker_at_once(
    house: Installation,
    database: str,
    broker: str | None,
    log: Path,
) -> None:
    await house.apply(*shop.ALL)
    with Fleet(database, broker, log, grace=60.0) as fleet:
        fleet.executor()
        leaving = fleet.worker()
        await house.client.start_many("shop.wait_for", [{"seconds": 50}])
        await house.until("select 1 from execution where status = 'running'")
        leaving.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            await asyncio.to_thread(leaving.wait, 1)
        leaving.send_signal(signal.SIGTERM)
        await asyncio.to_thread(leaving.wait, 20)
        fleet.alive.remove(leaving)
    assert set(await house.statuses()) <= {"requested", "scheduled"}, log.read_text()[-3000:]


async def test_a_worker_that_still_waits_for_its_broker_stops_when_it_is_asked_to(
    database: str, log: Path
) -> None:
    with Fleet(database, f"amqp://127.0.0.1:{free_port()}/nobody", log) as fleet:
        waiting = fleet.worker()
        async with asyncio.timeout(60):
            while "rabbitmq.retry" not in log.read_text():
                await asyncio.sleep(0.1)
        waiting.send_signal(signal.SIGTERM)
        await asyncio.to_thread(waiting.wait, 20)
        fleet.alive.remove(waiting)
    assert waiting.returncode == 0, log.read_text()[-3000:]
