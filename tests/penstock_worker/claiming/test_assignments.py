"""The assignments of a worker: each arrives once, and a next attempt waits for the slot of the previous one."""

from __future__ import annotations

import asyncio
import time
from uuid import UUID

import orjson

from penstock.language.terms.ids import new_id
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
        runner.slots.give_back(id)
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
        runner.slots.give_back(id)
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
