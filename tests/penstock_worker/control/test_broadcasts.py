"""Cancellations that reach a worker before, while and after it holds what they cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from penstock.language.terms.ids import new_id
from penstock.messaging.messages import CancelRequested
from penstock.messaging.transports import Delivery
from penstock_worker.control import broadcasts


class Worker:
    """A transport that delivers what a test says, a database in which all executions are to end, and a runner."""

    def __init__(self) -> None:
        self.deliveries: asyncio.Queue[list[Delivery]] = asyncio.Queue()
        self.held_ids: set[UUID] = set()
        self.cancelled: list[UUID] = []
        self.canceling: set[UUID] = set()
        self.ended_at_once: list[UUID] = []
        self.questions = 0

    async def listen(self) -> Any:
        return self

    async def receive(self, limit: int) -> list[Delivery]:
        return await self.deliveries.get()

    async def close(self) -> None: ...

    async def fetch(self, sql: str, ids: Sequence[UUID]) -> list[dict[str, Any]]:
        self.questions += 1
        return [{"id": id, "canceling": id in self.canceling} for id in ids]

    @property
    def slots(self) -> Worker:
        return self

    def held(self) -> set[UUID]:
        return self.held_ids

    def cancel(self, ids: Sequence[UUID]) -> None:
        self.cancelled += ids

    def end_clean_up(self, ids: Sequence[UUID]) -> None:
        self.ended_at_once += ids

    def send(self, *ids: UUID) -> None:
        body = CancelRequested(ids=list(ids)).model_dump_json().encode()
        self.deliveries.put_nowait([Delivery("workers", body, 1)])

    async def until_cancelled(self, *ids: UUID) -> None:
        async with asyncio.timeout(20):
            while self.cancelled != list(ids):
                await asyncio.sleep(0.005)


@asynccontextmanager
async def listening(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(broadcasts, "RECHECK_S", 0.01)
    worker: Any = Worker()
    task = asyncio.create_task(broadcasts.obey_broadcasts(worker, worker, worker, lambda _: None))
    yield worker
    worker.deliveries.put_nowait([])
    await asyncio.wait_for(task, 20)


async def test_second_request_ends_the_clean_up(monkeypatch: pytest.MonkeyPatch) -> None:
    once, twice = new_id(), new_id()
    async with listening(monkeypatch) as worker:
        worker.held_ids = {once, twice}
        worker.canceling = {twice}
        worker.send(once, twice)
        await worker.until_cancelled(once, twice)
        assert worker.ended_at_once == [twice]


async def test_held_execution_is_cancelled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(monkeypatch) as worker:
        id, other = new_id(), new_id()
        worker.held_ids.add(id)
        worker.send(id, other)
        await worker.until_cancelled(id)
        assert worker.questions == 1


async def test_execution_that_arrives_after_its_cancellation_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with listening(monkeypatch) as worker:
        id = new_id()
        worker.send(id)
        await asyncio.sleep(0.05)
        assert worker.questions == 0, "nothing is asked of what is not here"
        worker.held_ids.add(id)
        await worker.until_cancelled(id)
        await asyncio.sleep(0.05)
        assert worker.questions == 1


async def test_cancellations_are_forgotten_after_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcasts, "REMEMBERED_S", 0.0)
    async with listening(monkeypatch) as worker:
        id = new_id()
        worker.send(id)
        await asyncio.sleep(0.05)
        worker.held_ids.add(id)
        await asyncio.sleep(0.05)
        assert worker.cancelled == []


async def test_newest_cancellations_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcasts, "REMEMBERED", 1)
    async with listening(monkeypatch) as worker:
        older, newer = new_id(), new_id()
        worker.send(older, newer)
        await asyncio.sleep(0.05)
        worker.held_ids.update((older, newer))
        await worker.until_cancelled(newer)
