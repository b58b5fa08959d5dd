"""A worker never runs more than it has slots."""

from __future__ import annotations

import asyncio
import random

from penstock import action, workflow
from tests.flows.installation import Installation

FEW = 4
"""Slots."""


class Counted:
    """The number of running calls, and the most that ever ran."""

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
