"""The assignments of a worker: each arrives once, and a next attempt waits for the slot of the previous one."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock.language.terms.ids import new_id
from penstock.store.executions import attempts
from penstock.store.session.database import Session
from penstock_worker.claiming import assignments
from penstock_worker.direct.direct_backend import DirectBackend
from tests.flows.installation import Installation
from tests.penstock_worker.claiming.test_claims import QUEUE
from tests.penstock_worker.claiming.test_claims_in_inbox import house_of_two, worker_of

__all__ = ["house_of_two"]
House = tuple[Installation, list[UUID]]


async def notification(house: Installation, backend: DirectBackend, id: UUID, attempt: int) -> str:
    """Have the worker know the action, and return the text that a transaction would send now."""
    await backend.claiming.claims.look_up_current(["claims.known"])
    [row] = await house.rows("select id from definition where ref = 'claims.known'")
    backend.assignments._asked_at = time.monotonic()
    values = [
        id,
        attempt,
        attempt - 1,
        "public::claims::known",
        row["id"],
        0.1,
        "{}",
        None,
        None,
        None,
        None,
        None,
        None,
    ]
    message = {"claim": new_id(), "queue": QUEUE, "claimed": [values], "at": time.time()}
    return orjson.dumps(message).decode()


async def test_next_attempt_waits_until_the_last_one_is_settled(house_of_two: House) -> None:
    house, [id, _] = house_of_two
    async with worker_of(house, 2) as (runner, backend):
        text = await notification(house, backend, id, 2)
        runner.slots.take(id, 1)
        backend.assignments.heard(text)
        await asyncio.sleep(4 * assignments.SETTLED_S)
        assert runner.slots.held() == {id: 1}
        runner.slots.give_back(id, 1)
        async with asyncio.timeout(10):
            while runner.slots.held() != {id: 2}:
                await asyncio.sleep(assignments.SETTLED_S)
        [owned] = runner._inbox.take_all()
        assert (owned.event.attempt, owned.failures) == (2, 1)


async def test_same_notification_arrives_once(house_of_two: House) -> None:
    house, [id, _] = house_of_two
    async with worker_of(house, 2) as (runner, backend):
        text = await notification(house, backend, id, 1)
        for _ in range(2):
            backend.assignments.heard(text)
        runner.slots.give_back(id, 1)
        backend.assignments.heard(text)
        assert len(runner._inbox.take_all()) == 1
        assert not runner.slots.held()


async def test_notification_from_before_a_look_that_did_not_find_its_claim_begins_nothing(
    house_of_two: House,
) -> None:
    """The worker stood still, and its work was taken from it. What it is told of is read after its first look."""
    house, [id, _] = house_of_two
    async with worker_of(house, 2) as (runner, backend):
        text = await notification(house, backend, id, 1)
        await backend.assignments.look(older=0.0)
        backend.assignments.heard(text)
        assert not runner.slots.held()
        backend.assignments.heard(await notification(house, backend, id, 1))
        assert runner.slots.held() == {id: 1}


async def assigned(house: Installation, backend: DirectBackend, ids: list[UUID]) -> None:
    """Have the database hold a claim of this worker for each of these executions, and the notifications lost."""
    await backend.claiming.claims.look_up_current(["claims.known"])
    worker = backend.assignments._worker
    await house.rows(
        "update execution set status = 'running', attempt = 1, claim = $1 where id = any ($2::uuid[]) returning 1",
        worker,
        ids,
    )
    await house.rows(
        "insert into claim (id, worker, executions, assigned) "
        "select gen_random_uuid(), $1, array[id], true from unnest($2::uuid[]) id returning 1",
        worker,
        ids,
    )


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that will have the statements from now on."""
    asked: list[str] = []
    fetch = Session.fetch

    async def counting(self: Session, sql: str, *arguments: Any) -> Any:
        asked.append(sql)
        return await fetch(self, sql, *arguments)

    monkeypatch.setattr(Session, "fetch", counting)
    return asked


async def test_look_takes_all_claims_with_one_statement(
    house_of_two: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a stall of the disk many claims are looked up at once, and all work behind them waits."""
    house, ids = house_of_two
    async with worker_of(house, 2) as (runner, backend):
        await assigned(house, backend, ids)
        asked = counted(monkeypatch)
        await backend.assignments.look(older=0.0)
        assert set(runner.slots.held()) == set(ids)
        assert len(asked) == 1


async def test_notifications_that_come_during_a_look_lead_to_one_more(
    house_of_two: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look under way may have begun before the commit that a notification is about."""
    house, ids = house_of_two
    look, looks, read, may_end = attempts.assigned, 0, asyncio.Event(), asyncio.Event()

    async def slow(*arguments: Any) -> Any:
        nonlocal looks
        looks += 1
        found = await look(*arguments)
        read.set()
        await may_end.wait()
        return found

    monkeypatch.setattr(attempts, "assigned", slow)
    async with worker_of(house, 2) as (runner, backend), asyncio.timeout(20):
        await assigned(house, backend, ids[:1])
        backend.assignments.look_soon(0.0)
        await read.wait()
        await assigned(house, backend, ids[1:])
        for _ in range(20):
            backend.assignments.look_soon(0.0)
            await asyncio.sleep(0)
        may_end.set()
        await asyncio.gather(*backend.assignments._tasks)
        assert set(runner.slots.held()) == set(ids)
        assert looks == 2
