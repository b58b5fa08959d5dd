"""The next attempt of an execution comes to the worker that had the one before: neither ends what belongs to the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from penstock import Retry, action, current
from penstock.language.terms.ids import new_id
from penstock.operate.check import check
from penstock.service.heartbeat import Identity
from penstock.store.processes import heartbeats
from penstock_worker.attempts.runner import Runner
from penstock_worker.control.heartbeat_answer import answered
from penstock_worker.direct.direct_backend import DirectBackend
from penstock_worker.executors import executors
from tests.flows.installation import Installation
from tests.penstock_worker.attempts.direct_runner import runner_with_backend

pytestmark = pytest.mark.either_transport

SILENCE_S = 60.0


@action(pack="again", retry={"max_attempts": 2, "initial_delay": 0.0})
async def fails_first(seconds: float) -> int:
    if current().attempt == 1:
        raise Retry(after=0.0)
    await asyncio.sleep(seconds)
    return current().attempt


@action(pack="again", max_recoveries=5)
async def lasts_first(seconds: float) -> int:
    await asyncio.sleep(60 if current().attempt == 1 else seconds)
    return current().attempt


ACTIONS = (fails_first, lasts_first)


@asynccontextmanager
async def a_worker(house: Installation) -> AsyncIterator[tuple[Identity, Runner, DirectBackend]]:
    """A registered worker that claims when the test says so."""
    parts = await house.parts()
    refs = {action.ref: action for action in ACTIONS}
    me = Identity(new_id(), "worker", "w", ["default"], list(refs))
    await heartbeats.register(house.session, me, None)
    async with executors(parts.settings, {}) as task_executors:
        runner, backend = runner_with_backend(parts, me, refs, task_executors)
        tasks = [asyncio.create_task(run()) for run in (runner.run, backend.reports.run)]
        try:
            yield me, runner, backend
        finally:
            for task in tasks:
                task.cancel()


async def claim(house: Installation, backend: DirectBackend, id: UUID) -> None:
    await house.until("select 1 from execution where id = $1 and status = 'scheduled'", id)
    await backend.claiming.claim("work.default", [id])


async def ended(runner: Runner, backend: DirectBackend) -> None:
    async with asyncio.timeout(30):
        await runner.slots.all_free()
        await backend.reports.drained()


async def test_late_answer_about_an_attempt_does_not_end_the_next_one(house: Installation) -> None:
    """A heartbeat named attempt 1, and reached the database when this worker had attempt 2 already."""
    await house.apply(*ACTIONS)
    await house.executor()
    async with a_worker(house) as (me, runner, backend):
        id = await house.client.start("again.fails_first", {"seconds": 1.0})
        await claim(house, backend, id)
        await ended(runner, backend)
        await claim(house, backend, id)
        assert runner.slots.held() == {id: 2}
        pulse = await heartbeats.beat(house.session, me.id, {id: 1}, SILENCE_S)
        assert pulse.lost_attempts == {id: 1}
        answered(runner, pulse)
        await ended(runner, backend)
        assert await house.client.result(id, timeout=20) == 2
        assert not await house.rows("select from claim")


async def test_attempt_that_was_lost_ends_as_the_next_one_arrives(house: Installation) -> None:
    await house.apply(*ACTIONS)
    await house.executor()
    async with a_worker(house) as (me, runner, backend):
        id = await house.client.start("again.lasts_first", {"seconds": 1.0})
        await claim(house, backend, id)
        await house.until("select 1 from execution where status = 'running'")
        first = runner.running[id]
        await house.session.fetch("select from recover_executions($1, array[$2::uuid], 'a test')", me.id, id)
        await claim(house, backend, id)
        runner._begin_arrived()
        async with asyncio.timeout(20):
            await asyncio.wait([first.task])
        assert first.claim_lost
        assert runner.slots.held() == {id: 2}, "the end of attempt 1 leaves the slot to attempt 2"
        assert runner.running[id].attempt.event.attempt == 2
        pulse = await heartbeats.beat(house.session, me.id, runner.slots.held(), SILENCE_S)
        assert not pulse.lost_attempts
        await ended(runner, backend)
        assert await house.client.result(id, timeout=20) == 2
        assert not await house.rows("select from claim")
        assert not [found for found in await check(house.session) if found.violations]
