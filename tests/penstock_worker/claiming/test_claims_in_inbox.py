"""The claims in the inbox: each has its slot before it leaves the inbox, and commands reach it there, too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from penstock import action
from penstock.language.terms.ids import new_id
from penstock.service.heartbeat import Identity
from penstock_worker.attempts.runner import Runner
from penstock_worker.direct.direct_backend import DirectBackend
from penstock_worker.executors import executors
from tests.flows.installation import Installation
from tests.penstock_worker.attempts.direct_runner import runner_with_backend
from tests.penstock_worker.claiming.test_claims import QUEUE, scheduled

BEGUN: list[str] = []


@action(pack="claims")
async def known() -> None:
    BEGUN.append("known")


@pytest.fixture
async def house_of_two(house: Installation) -> tuple[Installation, list[UUID]]:
    BEGUN.clear()
    await house.apply(known)
    executor = await house.executor()
    ids = await scheduled(house, *["claims.known"] * 2)
    await house.ended(executor)
    return house, ids


@asynccontextmanager
async def worker_of(house: Installation, slots: int) -> AsyncIterator[tuple[Runner, DirectBackend]]:
    parts = await house.parts()
    worker = Identity(new_id(), "worker", "w", ["default"], ["claims.known"])
    async with executors(parts.settings, {}) as task_executors:
        yield runner_with_backend(parts, worker, {"claims.known": known}, task_executors, slots)


async def test_claimed_work_holds_its_slot_before_it_begins(
    house_of_two: tuple[Installation, list[UUID]],
) -> None:
    house, ids = house_of_two
    async with worker_of(house, slots=1) as (runner, backend):
        await backend.claiming.claim(QUEUE, ids)
        assert (runner.slots.free, len(runner.slots.held()), runner.running) == (0, 1, {})
    assert len(await house.rows("select from execution where status = 'running'")) == 1


async def test_cancelled_work_ends_in_the_inbox_without_a_begin(
    house_of_two: tuple[Installation, list[UUID]],
) -> None:
    house, ids = house_of_two
    async with worker_of(house, slots=2) as (runner, backend):
        await backend.claiming.claim(QUEUE, ids)
        runner.cancel(ids[:1])
        tasks = [asyncio.create_task(runner.run()), asyncio.create_task(backend.reports.run())]
        async with asyncio.timeout(20):
            await runner.slots.all_free()
            await backend.reports.drained()
        for task in tasks:
            task.cancel()
    assert BEGUN == ["known"]
    assert [(await house.client.get(id)).status for id in ids] == ["cancelled", "completed"]
