"""The number of permits that a worker wants, by its slots, its rate and the possible rest on its route."""

from __future__ import annotations

import time
from uuid import UUID

import pytest

from penstock.settings import Settings
from penstock.store.session.database import Database
from penstock_worker.claiming import permits
from penstock_worker.claiming.permits import FEWEST, HURRIED, MOST, PAUSE_S, QUIET_S, Permits
from penstock_worker.records.slots import Slots

QUEUE = "work.default"


class Clock:
    """The monotonic clock of the module."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    ours = Clock()
    monkeypatch.setattr(permits, "time", ours)
    assert time.monotonic() != ours.monotonic()
    return ours


def wanting(slots: Slots) -> Permits:
    """Permits of a worker that never asks the database."""
    database = Database(Settings(database_url="postgresql://127.0.0.1:1/nowhere"), role="test")  # type: ignore[arg-type]
    made = Permits(database.session(), UUID(int=1), slots, lambda queue: [1], behind=False)
    made.waits(QUEUE)
    made._routes[QUEUE].definitions = [1]
    return made


async def test_none_is_wanted_until_consumer_waited_in_vain(clock: Clock) -> None:
    slots = Slots(8)
    ours = wanting(slots)
    assert ours._wanted(QUEUE) == 0
    clock.now += QUIET_S
    assert ours._wanted(QUEUE) == FEWEST
    ours.has_message(QUEUE)
    assert ours._wanted(QUEUE) == FEWEST, "a message that the consumer has waited for says that none was left"
    ours.is_full(QUEUE)
    assert ours._wanted(QUEUE) == 0
    ours.waits(QUEUE)
    clock.now += QUIET_S / 2
    assert ours._wanted(QUEUE) == 0
    clock.now += QUIET_S
    assert ours._wanted(QUEUE) == FEWEST


async def test_messages_without_a_wait_say_that_more_are_left(clock: Clock) -> None:
    ours = wanting(Slots(8))
    clock.now += QUIET_S
    for _ in range(HURRIED + 1):
        assert ours._wanted(QUEUE) == FEWEST
        ours.has_message(QUEUE)
        ours.waits(QUEUE)
    ours.has_message(QUEUE)
    assert ours._wanted(QUEUE) == 0


@pytest.mark.parametrize(
    ("free", "rate", "number"),
    [(1, 0, 1), (2, 0, 1), (4, 0, FEWEST), (8, 3.5, 4), (8, 100, 4), (500, 1e6, MOST)],
)
async def test_half_of_free_slots_and_rate_bound_the_number(
    clock: Clock, free: int, rate: float, number: int
) -> None:
    ours = wanting(Slots(free))
    clock.now += QUIET_S
    ours._routes[QUEUE].rate = rate
    assert ours._wanted(QUEUE) == number


async def test_none_is_wanted_without_a_slot_or_a_definition(clock: Clock) -> None:
    slots = Slots(1)
    ours = wanting(slots)
    clock.now += QUIET_S
    slots.take(UUID(int=2), 1)
    assert ours._wanted(QUEUE) == 0
    slots.give_back(UUID(int=2), 1)
    assert ours._wanted(QUEUE) == 1
    ours._routes[QUEUE].definitions = []
    assert ours._wanted(QUEUE) == 0


async def test_two_routes_share_half_of_the_free_slots(clock: Clock) -> None:
    slots = Slots(4)
    ours = wanting(slots)
    ours.waits("work.other")
    ours._routes["work.other"].definitions = [1]
    clock.now += QUIET_S
    ours._routes[QUEUE].out = ours._wanted(QUEUE)
    ours._promise()
    assert (slots.promised, slots.unpromised) == (2, 2)
    assert ours._wanted("work.other") == 0


async def test_messages_that_needed_a_slot_pause_permits(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    slots = Slots(1)
    ours = wanting(slots)
    clock.now += QUIET_S
    ours._routes[QUEUE].out = 1
    ours._promise()

    async def withdraw(queue: str, count: int) -> int:
        return count

    monkeypatch.setattr(ours, "_withdraw", withdraw)
    await ours.make_room(1)
    assert slots.unpromised == 1
    assert ours._wanted(QUEUE) == 0
    clock.now += PAUSE_S
    assert ours._wanted(QUEUE) == 1


async def test_rate_follows_used_permits(clock: Clock) -> None:
    ours = wanting(Slots(64))
    route = ours._routes[QUEUE]
    for _ in range(100):
        clock.now += 0.05
        ours.use(QUEUE, 1)
        route.count(clock.now)
    assert 15 < route.rate < 25
    clock.now += 10
    route.count(clock.now)
    assert route.rate == 0
