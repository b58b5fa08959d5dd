"""Functions that wait under limits of one, while workers, executors and sessions of the database are killed: each completes with
its own result, no limit is exceeded, and no slot is lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest

from penstock.errors import PenstockError
from tests.crash import waiting_work
from tests.crash.processes import Fleet, Started
from tests.flows.installation import Installation

EACH = 3
"""Executions of each action."""
SECONDS = 12.0
"""The time for which something is killed again and again."""
SESSIONS = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and application_name like any (array['worker%', 'executor%'])
    and backend_type = 'client backend'
"""
ALL = (
    *(getattr(waiting_work, name) for name in ("child", "nested", *waiting_work.EXPECTED)),
    *waiting_work.LIMITS,
)


def worker(fleet: Fleet) -> Started:
    return fleet.start("worker", "--module", "tests.crash.waiting_work", "--concurrency", "4")


class Processes:
    """The running processes by their kind. The like of a killed process is started again."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._of: dict[str, list[Started]] = {"worker": [], "executor": []}

    def begin(self, kind: str) -> None:
        self._of[kind].append(worker(self._fleet) if kind == "worker" else self._fleet.executor())

    async def kill(self, house: Installation, draw: random.Random) -> None:
        """Kill a process, or end all sessions with the database."""
        kind = draw.choice(("worker", "worker", "executor", "sessions"))
        if kind == "sessions":
            await house.rows(SESSIONS)
            return
        victim = draw.choice(self._of[kind])
        self._of[kind].remove(victim)
        self._fleet.kill(victim)
        self.begin(kind)


async def answer(house: Installation, ids: Sequence[UUID], asked: Sequence[UUID]) -> None:
    """Send each signal and each answer once it is accepted."""
    for id in ids:
        await house.client.signal(id, "go", 7)
    unanswered = set(asked)
    while unanswered:
        for id in sorted(unanswered):
            with suppress(PenstockError):
                await house.client.answer(id, 7, by="ada")
                unanswered.discard(id)
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("seed", [1])
async def test_waits_survive_kills_under_limits_of_one(
    house: Installation, database: str, broker: str | None, tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    await house.apply(*ALL)
    with Fleet(database, broker, tmp_path / "log", suspend_after=0.0) as fleet:
        processes = Processes(fleet)
        for kind in ("executor", "executor", "worker", "worker"):
            processes.begin(kind)
        ids: dict[str, list[UUID]] = {
            name: [await house.client.start(f"waits.{name}", {"n": 100 * n}) for n in range(EACH)]
            for name in ("nested", *waiting_work.EXPECTED)
        }
        answering = asyncio.create_task(answer(house, ids["signalled"], ids["asking"]))
        until = asyncio.get_running_loop().time() + SECONDS
        while asyncio.get_running_loop().time() < until:
            await asyncio.sleep(draw.uniform(0.2, 1.2))
            await processes.kill(house, draw)
        for name, of_name in ids.items():
            for n, id in enumerate(of_name):
                expected = 2 * (100 * n + 3) if name == "nested" else 100 * n + waiting_work.EXPECTED[name]
                assert await house.client.result(id, timeout=120) == expected, (name, n)
        await answering
        await house.quiet()
    left = "select count(*) as count from {} having count(*) > 0"
    for table in ("slot", "waiter", "lane", "suspended", "claim"):
        assert not await house.rows(left.format(table)), table
    await house.sound()
