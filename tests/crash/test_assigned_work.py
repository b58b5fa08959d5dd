"""Workers that are killed, frozen and cut off while submits assign work to them."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.crash import noted_runs
from tests.crash.processes import Fleet, Started
from tests.flows.installation import Installation

ASSIGNED = "select count(*) as n from execution where attempt > 0"
PERMITS = "select from permit group by worker having count(*) > 0"
CUT = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and application_name like 'worker:%' and query ilike 'listen%' or pid in (
    select l.pid from pg_locks l where l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and l.objsubid = 1
        and l.database = (select oid from pg_database where datname = current_database()))
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "services.log"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "runs"
    path.touch()
    return path


def worker(fleet: Fleet, concurrency: int = 8) -> Started:
    return fleet.start("worker", "--module", "tests.crash.noted_runs", "--concurrency", str(concurrency))


def runs(notes: Path) -> list[tuple[int, int, int]]:
    """The number, the attempt and the process of each run."""
    return [tuple(map(int, line.split())) for line in notes.read_text().splitlines()]  # type: ignore[misc]


async def start(house: Installation, notes: Path, numbers: Sequence[int]) -> None:
    for n in numbers:
        await house.client.start("noted.run", {"n": n, "path": str(notes)})


async def all_done(house: Installation, count: int) -> None:
    await house.until(
        "select 1 from execution where status = 'completed' having count(*) = $1", count, seconds=90
    )
    await house.quiet()
    await house.sound()


async def test_killed_workers_lose_nothing_that_they_were_assigned(
    house: Installation, database: str, broker: str | None, log: Path, notes: Path
) -> None:
    await house.apply(noted_runs.run)
    with Fleet(database, broker, log, heartbeat_interval=10, stale_threshold=60) as fleet:
        fleet.executor()
        first = worker(fleet)
        await house.until(PERMITS, seconds=90)
        await start(house, notes, range(20))
        second = worker(fleet)
        await house.until("select from permit having count(distinct worker) = 2", seconds=90)
        starting = asyncio.create_task(start(house, notes, range(20, 120)))
        await house.until("select from execution having count(*) >= 60")
        fleet.kill(first)
        await starting
        await all_done(house, 120)
        assert await house.rows("select from claim where assigned") == []
        second.send_signal(signal.SIGTERM)
        await asyncio.to_thread(second.wait, 30)
        fleet.alive.remove(second)
        await house.until(
            "select where not exists (select from permit)", seconds=90
        )  # those of the first, too
    assert {n for n, _, _ in runs(notes)} == set(range(120))
    attempts = Counter((n, attempt) for n, attempt, _ in runs(notes))
    assert max(attempts.values()) == 1, "an attempt ran twice"


async def test_frozen_worker_begins_nothing_that_was_taken_from_it(
    house: Installation, database: str, broker: str | None, log: Path, notes: Path
) -> None:
    """Submits assign work to a worker that stands still, as its session lives. It is lost with the worker, and runs elsewhere.
    The notifications wait for the worker to go on."""
    await house.apply(noted_runs.run)
    with Fleet(database, broker, log) as fleet:
        fleet.executor()
        frozen = worker(fleet)
        await house.until(PERMITS, seconds=90)
        fleet.kill(frozen, signal.SIGSTOP)
        await start(house, notes, range(6))
        [[assigned]] = await house.rows("select count(*) from claim where assigned")
        assert assigned >= 1
        other = worker(fleet)
        await all_done(house, 6)
        before = runs(notes)
        assert {process for _, _, process in before} == {other.pid}
        fleet.kill(frozen, signal.SIGCONT)
        await house.until(
            "select from process where kind = 'worker' and state = 'active' having count(*) = 2"
        )
        await asyncio.sleep(1)
        assert runs(notes) == before, log.read_text()[-3000:]
        await house.sound()


async def test_worker_whose_session_is_cut_finds_its_work(
    house: Installation, database: str, broker: str | None, log: Path, notes: Path
) -> None:
    """A session that ends may take notifications with it. The worker listens again, and looks."""
    await house.apply(noted_runs.run)
    with Fleet(database, broker, log, heartbeat_interval=10, stale_threshold=60) as fleet:
        fleet.executor()
        worker(fleet)
        await house.until(PERMITS, seconds=90)
        for n in range(0, 60, 10):
            starting = asyncio.create_task(start(house, notes, range(n, n + 10)))
            await house.rows(CUT)
            await starting
        await all_done(house, 60)
    attempts = Counter((n, attempt) for n, attempt, _ in runs(notes))
    assert max(attempts.values()) == 1
    assert {n for n, _, _ in runs(notes)} == set(range(60))
