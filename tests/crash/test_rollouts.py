"""Two versions of durable functions on workers of one queue, some of which die: a run gets its own results, or stops."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from penstock.errors import ExecutionFailed
from tests.crash import rollout, rollout_new, rollout_old
from tests.crash.processes import Fleet, Started
from tests.flows.installation import Installation

OLD, NEW = "tests.crash.rollout_old", "tests.crash.rollout_new"
PATIENCE_S = 60.0
RUNS = 8
"""Runs of each function that begin at random while workers die."""
DEATHS = 4
LEFT = "select from log_line where execution_id = $1 and line = $2"
"""The line of a run that an old worker has left to a new one."""


@pytest.fixture
def fleet(
    database: str, broker: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Fleet]:
    (tmp_path / "calls").touch()
    monkeypatch.setenv(rollout.FOLDER, str(tmp_path))
    with Fleet(database, broker, tmp_path / "services.log", suspend_after=0.0) as fleet:
        fleet.executor()
        yield fleet


def worker(fleet: Fleet, module: str) -> Started:
    return fleet.start("worker", "--module", module)


async def dead(process: Started) -> None:
    """Wait until a worker has killed itself."""
    async with asyncio.timeout(PATIENCE_S):
        while process.poll() is None:
            await asyncio.sleep(0.02)


def calls_of(id: UUID) -> Counter[str]:
    """Return how often each step of a run was called."""
    lines = [line.split() for line in (rollout.folder() / "calls").read_text().splitlines()]
    return Counter(step for execution, _, step in lines if execution == str(id))


async def failure_of(house: Installation, id: UUID) -> str:
    with pytest.raises(ExecutionFailed) as failed:
        await house.client.result(id, timeout=PATIENCE_S)
    return str(failed.value)


async def test_run_past_a_change_completes_beside_old_workers(house: Installation, fleet: Fleet) -> None:
    """The old worker dies after the first step, and the run goes on where it was, on the old path."""
    await house.apply(*rollout_old.OLD)
    (rollout.folder() / "die-booked").touch()
    first = worker(fleet, OLD)
    id = await house.client.start("rollout.guarded")
    await dead(first)
    second = worker(fleet, OLD)
    await house.until("select from step where name = 'charge'", seconds=PATIENCE_S)
    fleet.kill(second)
    await house.apply(*rollout_new.NEW)
    worker(fleet, OLD), worker(fleet, NEW)
    assert await house.client.result(id, timeout=PATIENCE_S) == ["book", "charge", "ship"]
    calls = calls_of(id)
    assert calls["book"] == calls["charge"] == 1, "recorded before the deaths"
    assert calls.keys() == {"book", "charge", "ship"}
    await house.sound()


async def test_run_with_a_change_waits_for_a_new_worker(house: Installation, fleet: Fleet) -> None:
    """The old worker calls nothing and undoes nothing. The new worker goes on, and calls no recorded step again."""
    await house.apply(*rollout_new.NEW)
    (rollout.folder() / "die-insured").touch()
    first = worker(fleet, NEW)
    id = await house.client.start("rollout.guarded")
    await dead(first)
    old = worker(fleet, OLD)
    await house.until(
        LEFT, id, "the run waits for a worker with code for the change 'insured'", seconds=PATIENCE_S
    )
    assert calls_of(id) == {"book": 1, "insure": 1}
    fleet.kill(old, signal.SIGTERM)
    worker(fleet, NEW)
    assert await house.client.result(id, timeout=PATIENCE_S) == ["book", "insure", "charge", "ship"]
    assert calls_of(id) == {"book": 1, "insure": 1, "charge": 1, "ship": 1}
    await house.sound()


async def test_run_without_its_recorded_change_stops(house: Installation, fleet: Fleet) -> None:
    """The change is older than a rollout takes. The error names both calls, and nothing is undone. A re-run on the new code calls
    no earlier step again."""
    await house.apply(*rollout_new.NEW)
    (rollout.folder() / "die-insured").touch()
    first = worker(fleet, NEW)
    id = await house.client.start("rollout.guarded")
    await dead(first)
    await house.rows("update step set at = at - interval '1 hour' where kind = 'version' returning 1")
    old = worker(fleet, OLD)
    error = await failure_of(house, id)
    assert "ReplayMismatch" in error
    assert "requests step charge, but its run has recorded version insured at position 3" in error
    assert calls_of(id) == {"book": 1, "insure": 1}
    fleet.kill(old)
    worker(fleet, NEW)
    again = await house.client.rerun(id, from_task="insure", by="test")
    result = await house.client.result(again, timeout=PATIENCE_S)
    assert result == ["book", "insure", "charge", "ship"]
    assert calls_of(again) == {"insure": 1, "charge": 1, "ship": 1}
    await house.sound()


async def test_run_with_a_renamed_step_stops(house: Installation, fleet: Fleet) -> None:
    await house.apply(*rollout_old.OLD)
    first = worker(fleet, OLD)
    id = await house.client.start("rollout.renamed")
    await house.until("select from step where name = 'charge'", seconds=PATIENCE_S)
    fleet.kill(first)
    worker(fleet, NEW)
    error = await failure_of(house, id)
    assert "requests step debit, but its run has recorded step charge at position 3" in error
    calls = calls_of(id)
    assert calls["book"] == calls["charge"] == 1
    assert calls.keys() <= {"book", "charge", "ship"}
    await house.sound()


async def test_run_that_waits_for_another_trigger_stops(house: Installation, fleet: Fleet) -> None:
    """The run waits when its worker dies. The new code does not get the event of the old trigger."""
    await house.apply(*rollout_old.OLD)
    await house.apply(*rollout_new.NEW)
    first = worker(fleet, OLD)
    id = await house.client.start("rollout.waits")
    await house.until("select from suspended", seconds=PATIENCE_S)
    fleet.kill(first)
    worker(fleet, NEW)
    await house.client.publish("rollout.paid", {})
    error = await failure_of(house, id)
    assert "requests wait_for wait_for (rollout.refunded), but" in error
    assert "its run has recorded wait_for wait_for (rollout.paid) at position 2" in error
    assert calls_of(id) == {"book": 1}
    await house.sound()


@pytest.mark.parametrize("function", ["guarded", "renamed"])
@pytest.mark.parametrize("seed", [1, 2])
async def test_runs_on_both_versions_get_their_own_results(
    house: Installation, fleet: Fleet, function: str, seed: int
) -> None:
    """Each run completes with the steps of one path, or stops. A step is called again only for a lost attempt."""
    dice = random.Random(seed)
    await house.apply(*rollout_old.OLD)
    workers = [(module, worker(fleet, module)) for module in (OLD, NEW)]
    ids = []
    for death in range(DEATHS):
        ids += [await house.client.start(f"rollout.{function}") for _ in range(RUNS // DEATHS)]
        await asyncio.sleep(dice.uniform(0.1, 0.8))
        module, process = workers.pop(dice.randrange(len(workers)))
        fleet.kill(process)
        workers.append((module, worker(fleet, module)))
        if death == 1:
            await house.apply(*rollout_new.NEW)
    for module, process in workers:
        if module == OLD:  # the rollout is over: a run with a change that old code left goes on
            fleet.kill(process)
            worker(fleet, NEW)
    for id in ids:
        await house.until(
            "select from execution where id = $1 and finished_at is not null", id, seconds=3 * PATIENCE_S
        )
        [row] = await house.rows("select status, recoveries from execution where id = $1", id)
        calls, lost = calls_of(id), row["recoveries"]
        recorded = await house.rows(
            "select name, tries from step where execution_id = $1 and kind = 'step'", id
        )
        assert {step["tries"] for step in recorded} == {1}
        again = {step: count - 1 for step, count in calls.items() if count > 1}
        assert all(count <= lost for count in again.values()), (calls, lost)
        if row["status"] == "completed":
            result = await house.client.result(id)
            middle = (
                {("charge",), ("insure", "charge")} if function == "guarded" else {("charge",), ("debit",)}
            )
            assert (result[0], tuple(result[1:-1]), result[-1]) in {("book", m, "ship") for m in middle}
            assert [step for step in result if step not in calls] == []
            assert len(calls.keys() - set(result)) <= lost, (calls, result)
            assert {step["name"] for step in recorded} == set(result)
        else:
            error = await failure_of(house, id)
            assert "ReplayMismatch" in error
            assert {"insured", "charge", "debit"} & set(error.split()), error
            assert not [step for step in calls if step.startswith("undo")]
    await house.sound()
