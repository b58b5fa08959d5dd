"""Races of tasks that wait, made to happen: nothing runs but what the test runs by hand, on connections of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import asdict
from typing import Any
from uuid import UUID

import pytest

from penstock import Trigger
from penstock.language.workflows import from_yaml
from penstock.messaging.consumer import Batch
from penstock.store.session.database import Session, Transaction
from penstock_executor.handlers import (
    event_created,
    execution_completed,
    execution_requested,
    workflow_started,
)
from tests.flows.installation import Installation

WORKFLOW = from_yaml("""
workflow: race.order
tasks:
  paid: {wait_for_event: {trigger: race.paid, timeout: 60}}
output: "{{ tasks.paid.result.payload.n }}"
""")
EXPIRE = "update timer set due_at = clock_timestamp() where kind = 'total'"
TIMERS = "select * from fire_due(100)"


class Scene:
    """A workflow that is about to wait, and three connections."""

    def __init__(self, house: Installation, sessions: list[Session]) -> None:
        self.house = house
        self.one, self.other, self.watcher = sessions
        self.run: UUID

    async def prepare(self) -> None:
        await self.house.apply(Trigger("race.paid"), WORKFLOW)
        self.run = await self.house.client.start("race.order")
        async with self.one.transaction() as tx:
            await execution_requested.handle(Batch([self.run]), tx)

    async def begin_to_wait(self, tx: Transaction) -> None:
        await workflow_started.handle(Batch([self.run]), tx)

    async def waits(self) -> UUID:
        async with self.one.transaction() as tx:
            await self.begin_to_wait(tx)
        return (await self.task())[0]

    async def publish(self, n: int) -> UUID:
        return await self.house.client.publish("race.paid", {"n": n})

    async def look_at(self, session: Session, *events: UUID) -> None:
        async with session.transaction() as tx:
            await event_created.handle(Batch(sorted(events)), tx)

    async def task(self) -> tuple[UUID, str]:
        [row] = await self.watcher.fetch("select id, status from execution where parent = $1", self.run)
        return row["id"], row["status"]

    async def blocked(self) -> None:
        """Wait until a connection waits for a lock."""
        async with asyncio.timeout(10):
            while not await self.watcher.fetch(
                "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
            ):
                await asyncio.sleep(0.005)

    async def while_open(self, tx_work: Any, other: Awaitable[Any]) -> None:
        """Do something in a transaction, and before it commits something else, which has to wait for it."""
        async with self.one.transaction() as tx:
            await tx_work(tx)
            task = asyncio.ensure_future(other)
            await self.blocked()
        await task

    async def outcome(self) -> dict[str, Any]:
        """Return the end of the workflow, once it has heard of the end of the task."""
        id, _ = await self.task()
        async with self.one.transaction() as tx:
            await execution_completed.handle(Batch([id]), tx)
        return asdict(await self.house.client.get(self.run))


@pytest.fixture
async def scene(database: str) -> AsyncIterator[Scene]:
    async with Installation(database, None) as house:
        parts = await house.parts()
        scene = Scene(house, [parts.database.session() for _ in range(3)])
        await scene.prepare()
        yield scene
        await house.sound()


async def test_an_event_that_is_looked_at_before_the_wait_is_committed_came_before_it(scene: Scene) -> None:
    async with scene.one.transaction() as tx:
        await scene.begin_to_wait(tx)
        await scene.look_at(scene.other, await scene.publish(1))
    assert (await scene.task())[1] == "waiting"
    await scene.look_at(scene.other, await scene.publish(2))
    assert (await scene.task())[1] == "completed"
    assert (await scene.outcome())["result"] == "2"


async def test_an_event_that_was_stored_before_the_wait_does_not_count_when_it_is_looked_at_late(
    scene: Scene,
) -> None:
    early = await scene.publish(1)
    await scene.waits()
    await scene.look_at(scene.other, early)
    assert (await scene.task())[1] == "waiting"


async def test_an_event_after_a_visible_wait_counts_when_handled_late(
    scene: Scene,
) -> None:
    await scene.waits()
    first, second = await scene.publish(1), await scene.publish(2)
    await scene.look_at(scene.other, second, first)
    assert (await scene.outcome())["result"] == "1"


async def test_two_replicas_with_two_events_end_the_wait_once(scene: Scene) -> None:
    await scene.waits()
    first, second = await scene.publish(1), await scene.publish(2)

    async def look(tx: Transaction) -> None:
        await event_created.handle(Batch([first]), tx)

    await scene.while_open(look, scene.look_at(scene.other, second))
    assert (await scene.outcome())["result"] == "1"
    moves = await scene.watcher.fetch("select 1 from history where new = 'completed' and old = 'waiting'")
    assert len(moves) == 1


async def test_of_an_event_and_a_timeout_the_first_to_move_wins(scene: Scene) -> None:
    await scene.waits()
    event = await scene.publish(1)
    await scene.watcher.fetch(EXPIRE)

    async with scene.one.transaction() as tx:
        await event_created.handle(Batch([event]), tx)
        await scene.other.fetch(TIMERS)  # the timer is taken already: it is skipped
    await scene.other.fetch(TIMERS)
    assert (await scene.outcome())["status"] == "completed"


async def test_of_a_timeout_and_an_event_the_first_to_move_wins(scene: Scene) -> None:
    await scene.waits()
    event = await scene.publish(1)
    await scene.watcher.fetch(EXPIRE)

    async def expire(tx: Transaction) -> None:
        await tx.fetch(TIMERS)

    await scene.while_open(expire, scene.look_at(scene.other, event))
    assert (await scene.task())[1] == "timeout"
    assert (await scene.outcome())["status"] == "failed"


async def test_of_a_cancellation_and_an_event_the_first_to_move_wins(scene: Scene) -> None:
    task = await scene.waits()
    event = await scene.publish(1)

    async def cancel(tx: Transaction) -> None:
        await tx.fetch("select * from cancel_executions($1::uuid[], 'enough')", [task])

    await scene.while_open(cancel, scene.look_at(scene.other, event))
    assert (await scene.task())[1] == "cancelled"
    assert (await scene.outcome())["status"] == "failed"
