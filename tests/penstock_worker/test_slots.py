"""Which slots of a worker are free, and that never more code runs than there are slots."""

from __future__ import annotations

import asyncio
import random

from penstock import action, workflow
from penstock.ids import new_id
from penstock_worker.slots import Slots
from tests.flows.installation import Installation

FEW = 4
"""Slots."""


class Counted:
    """How many run, and the most that ever did."""

    now = most = 0

    @classmethod
    async def run(cls) -> None:
        cls.now += 1
        cls.most = max(cls.most, cls.now)
        await asyncio.sleep(random.uniform(0, 0.004))
        cls.now -= 1


@action(pack="slots")
async def brief(number: int) -> None:
    await Counted.run()


@workflow(pack="slots")
def one_after_the_other() -> object:
    done = brief(number=0)
    for number in range(1, 6):
        done = brief(number=number).after(done)
    return done


def test_the_slot_of_an_attempt_whose_code_has_ended_is_free_where_all_are_held() -> None:
    slots = Slots(3)
    ids = [new_id() for _ in range(3)]
    for id in ids:
        slots.take(id, 1)
    assert slots.free == 0
    slots.ended(ids[0])
    assert (slots.free, slots.untouched) == (1, 0)
    assert ids[0] in slots.held(), "its claim is this worker's until its end is written"
    slots.give_back(ids[0])
    assert (slots.free, slots.untouched) == (1, 1)


def test_while_there_are_slots_that_nothing_is_held_for_no_other_is_free() -> None:
    slots = Slots(3)
    first = new_id()
    slots.take(first, 1)
    slots.ended(first)
    assert slots.free == 2


def test_no_more_ends_wait_than_there_are_slots() -> None:
    slots = Slots(2)
    for _ in range(2):
        for id in [new_id(), new_id()][: slots.free]:
            slots.take(id, 1)
            slots.ended(id)
    assert slots.free == 0
    slots.give_back(next(iter(slots.held())))
    assert slots.free == 1


def test_what_is_kept_for_a_claim_is_free_for_no_other() -> None:
    slots = Slots(3)
    with slots.keep(2):
        assert slots.free == 1
        with slots.keep(1):
            assert slots.free == 0
    assert slots.free == 3


def test_a_cordoned_worker_has_no_free_slot_whatever_has_ended() -> None:
    slots = Slots(1)
    id = new_id()
    slots.take(id, 1)
    slots.ended(id)
    slots.cordon(True)
    assert (slots.free, slots.untouched) == (0, 0)
    slots.cordon(False)
    assert slots.free == 1


async def test_never_more_code_runs_than_there_are_slots(house: Installation) -> None:
    """Steps that are taken in place, their claims and those of what comes by the route want the same slots."""
    Counted.now = Counted.most = 0
    await house.apply(brief, one_after_the_other)
    await house.executor()
    await house.worker(brief, concurrency=FEW)
    many = house.client.start_many("slots.brief", [{"number": number} for number in range(300)])
    chains = house.client.start_many("slots.one_after_the_other", [{}] * 30)
    ids = [id for found in await asyncio.gather(many, chains) for id in found]
    more = [await house.client.start("slots.brief", {"number": number}) for number in range(50)]
    await asyncio.gather(*(house.client.result(id, timeout=60) for id in [*ids, *more]))
    assert Counted.most == FEW, "no slot more, and all of them were used"
    await house.quiet()
    assert await house.rows("select from attempt") == [], "nothing ran twice"
    await house.sound()
