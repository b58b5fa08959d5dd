"""The batches of a worker: which attempts share a call, and what they take of its slots."""

from __future__ import annotations

import asyncio
import random
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from typing_extensions import TypedDict

from penstock import Batch
from penstock.attempts.action_versions import version_of
from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.language.definitions import action
from penstock.run.batch_item import Item
from penstock.run.run import Run, TaskReadyEvent
from penstock.run.run_log import RunLog
from penstock_worker.executors.python.async_ import AsyncExecutor
from penstock_worker.records.batches import MOST_WAITING, Batches, ItemBatch
from penstock_worker.records.executor_room import ExecutorRoom
from penstock_worker.records.slots import Slots

NUMBERS = count(1)


class Text(TypedDict, total=False):
    text: str
    colour: str


@action(pack="test", batch=Batch(3, within="60s"))
async def plain(items: list[Item[Text]]) -> list[int]:
    return [0] * len(items)


@action(pack="test", batch=Batch(3, within=60, by="colour"))
async def by_colour(items: list[Item[Text]]) -> list[int]:
    return [0] * len(items)


class Worker:
    """The records of a worker, with the sizes of the calls that it made."""

    def __init__(self, slots: int, capacity: int = 100) -> None:
        self.slots = Slots(slots)
        self.executor = AsyncExecutor(capacity=capacity)
        room = ExecutorRoom({"async": self.executor}, slots)
        self.batches = Batches(self.slots, room)
        self.calls: list[list[OwnedAttempt]] = []
        self.batches.call = self._call

    def _call(self, batch: ItemBatch) -> None:
        self.calls.append(list(batch.members.values()))

    def claim(self, of: Any = plain, tenant: str = "public", **params: Any) -> OwnedAttempt:
        id = UUID(int=next(NUMBERS))
        event = TaskReadyEvent(id, 1, 3, f"{tenant}::test::{of.name}", of.ref, id)
        owned = OwnedAttempt(event, version_of(of, of.body()), 0, UUID(int=0), params, {}, {}, 0.0)
        batch = self.batches.join(owned)
        self.slots.take(id, 1, batch)
        return owned

    def ready(self, *attempts: OwnedAttempt) -> None:
        for owned in attempts:
            run = Run(owned.event, {}, owned.version.action, RunLog(lambda *_: None))
            self.batches.ready(owned, run)

    def end(self, *attempts: OwnedAttempt) -> None:
        for owned in attempts:
            self.slots.give_back(owned.event.execution_id, owned.event.attempt)

    @property
    def sizes(self) -> list[int]:
        return [len(call) for call in self.calls]


async def test_full_batch_is_called_once_its_items_are_ready() -> None:
    worker = Worker(2)
    items = [worker.claim() for _ in range(3)]
    worker.ready(*items[:2])
    assert worker.sizes == []
    worker.ready(items[2])
    assert worker.calls == [items]


async def test_batch_takes_one_slot_until_its_last_item_is_reported() -> None:
    worker = Worker(2)
    items = [worker.claim() for _ in range(3)]
    other = worker.claim()
    assert (worker.slots.used, worker.slots.free, len(worker.slots.held())) == (2, 0, 4)
    worker.ready(*items, other)
    worker.end(*items[:2])
    assert worker.slots.free == 0
    worker.end(items[2])
    assert worker.slots.free == 1


async def test_open_batch_takes_more_though_no_slot_is_free() -> None:
    worker = Worker(1)
    worker.claim()
    assert (worker.slots.free, worker.slots.can_claim) == (0, True)
    assert worker.batches.room_of("test.plain", 3, places=0) == 2
    worker.claim()
    worker.claim()
    assert (worker.slots.can_claim, worker.batches.room_of("test.plain", 3, places=0)) == (False, 0)


async def test_cordoned_worker_fills_no_batch() -> None:
    worker = Worker(1)
    worker.claim()
    worker.slots.cordon(True)
    assert not worker.slots.can_claim


async def test_groups_and_tenants_never_share_a_call() -> None:
    worker = Worker(9)
    red = [worker.claim(by_colour, colour="red") for _ in range(3)]
    blue = worker.claim(by_colour, colour="blue")
    other = worker.claim(by_colour, "acme", colour="blue")
    bare = worker.claim(by_colour)
    worker.batches.drain()
    worker.ready(*red, blue, other, bare)
    assert worker.calls == [red, [blue], [other], [bare]]


async def test_batches_beyond_the_slots_wait_for_one() -> None:
    worker = Worker(1)
    attempts = [worker.claim(by_colour, colour=str(colour)) for colour in range(3)]
    worker.ready(*attempts)
    worker.batches.drain()
    assert worker.calls == [attempts[:1]]
    worker.end(attempts[0])
    assert worker.calls == [attempts[:1], attempts[1:2]]
    worker.end(attempts[1])
    assert worker.sizes == [1, 1, 1]


async def test_items_that_wait_are_bounded() -> None:
    worker = Worker(1)
    for colour in range(MOST_WAITING):
        worker.claim(by_colour, colour=str(colour))
    assert worker.batches.room_of("test.by_colour", 3, places=0) == 0
    assert not worker.slots.can_claim


async def test_item_that_leaves_is_not_waited_for() -> None:
    worker = Worker(1)
    first, second, third = (worker.claim() for _ in range(3))
    worker.ready(first, second)
    worker.batches.leave(third)
    worker.batches.leave(third)
    assert worker.calls == [[first, second]]


async def test_batch_that_all_items_left_is_forgotten() -> None:
    worker = Worker(1, capacity=1)
    item = worker.claim()
    worker.batches.leave(item)
    worker.end(item)
    assert not worker.batches.can_fill()
    next_one = worker.claim()
    worker.batches.drain()
    worker.ready(next_one)
    assert worker.calls == [[next_one]]


async def test_batch_is_called_when_its_time_has_passed() -> None:
    worker = Worker(1)
    brief = plain.with_options(batch=Batch(3, within=0))
    item = worker.claim(brief)
    worker.ready(item)
    assert worker.calls == []
    async with asyncio.timeout(10):
        while not worker.calls:
            await asyncio.sleep(0)
    assert worker.calls == [[item]]


async def test_full_executor_is_asked_again() -> None:
    """A thread was given up, and no attempt reports its end."""
    worker = Worker(2, capacity=1)
    started = worker.executor._tally.start()
    item = worker.claim()
    worker.ready(item)
    worker.batches.drain()
    assert worker.calls == []
    worker.executor._tally.end(started, None)
    async with asyncio.timeout(20):
        while not worker.calls:
            await asyncio.sleep(0.01)
    assert worker.calls == [[item]]


async def test_draining_worker_waits_for_no_further_items() -> None:
    worker = Worker(2)
    item = worker.claim()
    worker.ready(item)
    worker.batches.drain()
    assert worker.calls == [[item]]
    late = worker.claim()
    worker.ready(late)
    async with asyncio.timeout(10):
        while len(worker.calls) < 2:
            await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(200))
async def test_random_orders_keep_each_attempt_in_one_call(seed: int) -> None:
    """The model counts by itself what is held, runs and has ended. No more calls run than there are slots, none is too large or
    mixes groups, and each attempt that stays is in exactly one call."""
    draw = random.Random(seed)
    slots = draw.randrange(1, 4)
    worker = Worker(slots)
    size, colours = draw.randrange(1, 6), "abc"[: draw.randrange(1, 4)]
    of = by_colour.with_options(batch=Batch(size, within=60, by="colour"))
    claimed: list[OwnedAttempt] = []
    unready: list[OwnedAttempt] = []
    left: list[OwnedAttempt] = []
    running: list[list[OwnedAttempt]] = []
    ended = 0

    def check() -> None:
        running.extend(worker.calls[len(running) + ended :])
        assert len(running) <= slots
        called = [id(owned) for call in worker.calls for owned in call]
        assert len(called) == len(set(called))
        for call in worker.calls:
            assert 0 < len(call) <= size
            assert len({owned.params["colour"] for owned in call}) == 1

    for _ in range(draw.randrange(5, 80)):
        match draw.randrange(6):
            case 0 | 1 | 2:
                claimed.append(worker.claim(of, colour=draw.choice(colours)))
                unready.append(claimed[-1])
            case 3 if unready:
                worker.ready(unready.pop(draw.randrange(len(unready))))
            case 4 if unready:
                left.append(unready.pop(draw.randrange(len(unready))))
                worker.batches.leave(left[-1])
                worker.end(left[-1])
            case 5 if running:
                worker.end(*running.pop(draw.randrange(len(running))))
                ended += 1
        check()
    worker.batches.drain()
    worker.ready(*unready)
    check()
    while running:
        worker.end(*running.pop())
        ended += 1
        check()
    called = [id(owned) for call in worker.calls for owned in call]
    assert sorted(called) == sorted({id(owned) for owned in claimed} - {id(owned) for owned in left})
    assert (worker.slots.used, worker.slots.held()) == (0, {})


def test_wait_is_at_most_that_of_the_definition() -> None:
    assert version_of(plain, plain.body()).batch == Batch(3, within=60)
    assert version_of(plain, {**plain.body(), "batch": {"size": 9, "within": 5}}).batch == Batch(3, within=5)
    before = {name: value for name, value in plain.body().items() if name != "batch"}
    assert version_of(plain, before).batch == Batch(3, within=0)
