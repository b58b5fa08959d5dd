"""An action that calls `sys.exit()` in a task of its own ends its attempt, and not the process of the worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ExecutionFailed
from tests.crash import exiting
from tests.crash.processes import Fleet
from tests.flows.installation import Installation

ENDS = 5


async def test_exit_in_a_gathered_task_ends_its_attempt_alone(
    database: str, vhost: str, tmp_path: Path
) -> None:
    async with Installation(database, vhost) as house:
        await house.apply(exiting.gathers, exiting.works)
        with Fleet(database, vhost, tmp_path / "log", forked=False) as fleet:
            fleet.executor()
            worker = fleet.start("worker", "--module", "tests.crash.exiting")
            assert await house.client.run("exiting.works", {"n": 0}, timeout=60) == 0
            for n in range(1, ENDS):
                beside = await house.client.start("exiting.works", {"n": n})
                with pytest.raises(ExecutionFailed, match="SystemExit"):
                    await house.client.run("exiting.gathers", timeout=60)
                assert await house.client.result(beside, timeout=60) == n
            assert worker.poll() is None
        attempts = await house.rows("select distinct attempt from execution where status = 'failed'")
        assert [row["attempt"] for row in attempts] == [1]
        await house.sound()
