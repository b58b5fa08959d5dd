"""Actions that call sys.exit() in a task that they do not await: their attempts end, and their worker goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ExecutionFailed
from tests.crash import exiting_unawaited as exiting
from tests.crash.processes import Fleet
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport


async def test_worker_goes_on_when_tasks_of_its_actions_exit(
    house: Installation, database: str, broker: str | None, tmp_path: Path
) -> None:
    await house.apply(*exiting.EXITING, exiting.works)
    with Fleet(database, broker, tmp_path / "services.log", stale_threshold=60.0) as fleet:
        fleet.executor()
        worker = fleet.start("worker", "--module", "tests.crash.exiting_unawaited")
        beside = await house.client.start_many("unawaited.works", [{"n": n} for n in range(20)])
        for action in exiting.EXITING:
            id = await house.client.start(action.ref, {})
            with pytest.raises(ExecutionFailed, match=r"SystemExit"):
                await house.client.result(id, timeout=60)
        assert [await house.client.result(id, timeout=60) for id in beside] == list(range(20))
        assert worker.poll() is None
    rows = await house.rows("select attempt, recoveries from execution where status = 'failed'")
    assert len(rows) == len(exiting.EXITING)
    assert {(row["attempt"], row["recoveries"]) for row in rows} == {(1, 0)}
    await house.sound()
