"""A worker that is asked to stop, with work in hand that does not end within its grace."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from penstock import action
from penstock.language.terms.ids import new_id
from penstock.service.heartbeat import Identity
from penstock_worker.executors import executors
from tests.flows.installation import Installation
from tests.penstock_worker.attempts.direct_runner import runner_with_backend

LONG = 3.0
"""Seconds that the work takes: longer than the grace."""


def note(file: str) -> int:
    """It has begun once more. Returns how often it has."""
    with Path(file).open("a") as lines:
        lines.write("begun\n")
    return begun(file)


def begun(file: str) -> int:
    path = Path(file)
    return len(path.read_text().splitlines()) if path.exists() else 0


async def nap(file: str) -> str:
    if note(file) == 1:
        await asyncio.sleep(LONG)
    return "done"


def doze(file: str) -> str:
    if note(file) == 1:
        time.sleep(LONG)
    return "done"


@action(pack="drain", on_worker_loss="fail")
async def once_async(file: str) -> str:
    return await nap(file)


@action(pack="drain", on_worker_loss="fail")
def once_thread(file: str) -> str:
    return doze(file)


@action(pack="drain", on_worker_loss="fail", executor="process")
def once_process(file: str) -> str:
    return doze(file)


@action(pack="drain")
async def often_async(file: str) -> str:
    return await nap(file)


@action(pack="drain")
def often_thread(file: str) -> str:
    return doze(file)


@action(pack="drain", executor="process")
def often_process(file: str) -> str:
    return doze(file)


@action(pack="drain")
async def breath() -> None:
    await asyncio.sleep(0.5)


ACTIONS = (breath, once_async, once_thread, once_process, often_async, often_thread, often_process)
ENDED = "select 1 from execution where id = $1 and status <> 'running'"


@pytest.fixture
def transport() -> str:
    return "postgres"


@pytest.mark.parametrize("how", ["async", "thread", "process"])
@pytest.mark.parametrize("often", ["once", "often"])
async def test_begun_work_is_handed_back_only_where_it_may_run_again(
    house: Installation, tmp_path: Path, how: str, often: str
) -> None:
    file = str(tmp_path / "begun")
    await house.apply(*ACTIONS)
    await house.executor()
    leaving = await house.worker(*ACTIONS, grace=0.3)
    id = await house.client.start(f"drain.{often}_{how}", {"file": file})
    async with asyncio.timeout(20):
        while not begun(file):
            await asyncio.sleep(0.02)
    [row_before] = await house.rows("select ready_at from execution where id = $1", id)
    await house.ended(leaving)
    await house.until(ENDED, id)
    await house.worker(*ACTIONS)
    await house.until("select 1 from execution where id = $1 and finished_at is not null", id)
    row = await house.client.get(id)
    if often == "once":
        assert (row.status, row.attempt, begun(file)) == ("failed", 1, 1)
        assert "its worker stopped" in (row.reason or "")
    else:
        assert (row.status, row.attempt, begun(file)) == ("completed", 2, 2)
        assert (row.recoveries, row.failures, row.ready_at) == (0, 0, row_before["ready_at"])
        tried = await house.rows("select outcome from attempt where execution_id = $1", id)
        assert [attempt["outcome"] for attempt in tried] == ["handed_back"]
    await house.sound()


async def test_work_that_had_not_begun_is_handed_back_under_any_policy(
    house: Installation, tmp_path: Path
) -> None:
    file = str(tmp_path / "begun")
    await house.apply(*ACTIONS)
    executor = await house.executor()
    id = await house.client.start("drain.once_async", {"file": file})
    await house.until("select 1 from execution where status = 'scheduled'")
    await house.ended(executor)
    parts = await house.parts()
    worker = Identity(new_id(), "worker", "leaving", ["default"], [action.ref for action in ACTIONS])
    refs = {action.ref: action for action in ACTIONS}
    async with executors(parts.settings, {}) as task_executors:
        runner, backend = runner_with_backend(parts, worker, refs, task_executors)
        reporting = asyncio.create_task(backend.reports.run())
        await backend.claiming.claim("work.default", [id])
        runner._begin_arrived()
        runner.running[id].stop()  # before the first step of its task
        async with asyncio.timeout(20):
            await runner.slots.all_free()
        reporting.cancel()
    row = await house.client.get(id)
    assert (row.status, row.attempt, row.recoveries, begun(file)) == ("scheduled", 1, 0, 0)
    await house.executor()
    await house.worker(*ACTIONS)
    await house.client.cancel(id)
    await house.quiet()
    await house.sound()


@pytest.mark.parametrize("known", [True, False])
async def test_the_row_of_a_claim_stays_where_an_attempt_was_only_feared_lost(
    house: Installation, known: bool
) -> None:
    await house.apply(*ACTIONS)
    executor = await house.executor()
    ids = [await house.client.start("drain.breath") for _ in range(2)]
    await house.until("select from execution where status = 'scheduled' having count(*) = 2")
    await house.ended(executor)
    parts = await house.parts()
    worker = Identity(new_id(), "worker", "w", ["default"], ["drain.breath"])
    refs = {action.ref: action for action in ACTIONS}
    async with executors(parts.settings, {}) as task_executors:
        runner, backend = runner_with_backend(parts, worker, refs, task_executors)
        reporting = asyncio.create_task(backend.reports.run())
        await backend.claiming.claim("work.default", ids)
        runner.lose({ids[0]: 1}, confirmed=known)
        async with asyncio.timeout(20):
            await runner.slots.all_free()
            await backend.reports.drained()
        reporting.cancel()
    assert [(await house.client.get(id)).status for id in ids] == ["running", "completed"]
    assert len(await house.rows("select from claim")) == (0 if known else 1)
