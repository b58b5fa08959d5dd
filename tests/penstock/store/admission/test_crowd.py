"""Clients, workers and changes of limits at once, for some seconds: no session waits in a circle, and all is right at
the end."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from uuid import UUID

import pytest

from penstock import Limit
from tests.penstock.store.admission.desk import Desk

SECONDS = 3.0
KINDS: dict[str, Callable[[random.Random], list[Limit]]] = {
    "two": lambda draw: [
        Limit(draw.randint(1, 3), ref="shop.each", scope="shop.charge", by="customer"),
        Limit(draw.randint(1, 5), ref="shop.whole", scope="shop"),
    ],
    "three": lambda draw: [
        Limit(draw.randint(1, 3), ref="shop.each", scope="shop.charge", by="customer"),
        Limit(draw.randint(1, 3), ref="shop.region", scope="shop", by="region"),
        Limit(draw.randint(2, 6), ref="ops.all", scope="*"),
    ],
    "refusing": lambda draw: [
        Limit(
            draw.randint(1, 3), ref="shop.each", scope="shop.charge", by="customer", when_full="cancel_new"
        ),
        Limit(draw.randint(1, 5), ref="shop.whole", scope="shop", max_waiting=3),
    ],
    "giving way": lambda draw: [
        Limit(draw.randint(1, 3), ref="shop.each", scope="shop.charge", by="customer"),
        Limit(draw.randint(1, 5), ref="shop.whole", scope="shop", when_full="cancel_running"),
    ],
}
ACTIONS = ("shop.charge", "shop.charge", "shop.refund", "mail.send")


class Crowd:
    def __init__(self, desk: Desk, seed: int) -> None:
        self._desk = desk
        self._seed = seed
        self._end = time.monotonic() + SECONDS
        self._known: list[UUID] = []

    async def client(self, n: int) -> None:
        session, draw = self._desk.database.session(), random.Random(self._seed * 100 + n)
        while time.monotonic() < self._end:
            ids: list[UUID] = []
            if draw.random() < 0.5:
                some = [
                    {"customer": draw.choice("abc"), "region": draw.choice("xy")}
                    for _ in range(draw.randint(1, 14))
                ]
                made, asked = await self._desk.submit_group(
                    some, draw.choice(ACTIONS), draw.choice([0, 0, 3]), session
                )
                self._known += made
                await self._desk.admit(asked, session)
                continue
            for _ in range(draw.randint(1, 8)):
                ids += await self._desk.request(
                    1, draw.choice(ACTIONS), draw.choice([0, 0, 3]),
                    customer=draw.choice("abc"), region=draw.choice("xy"),
                )  # fmt: skip
            self._known += ids
            again = draw.sample(self._known, min(len(self._known), 3)) if draw.random() < 0.3 else []
            await self._desk.admit([*{*ids, *again}], session)

    async def worker(self, n: int) -> None:
        desk, session, draw = (
            self._desk,
            self._desk.database.session(),
            random.Random(self._seed * 100 + 50 + n),
        )
        while time.monotonic() < self._end:
            some = await found(desk, "status = 'scheduled' limit 12")
            mine = await desk.claim(draw.sample(some, min(len(some), 6)), session)
            if mine:
                await desk.finish(
                    mine, draw.choice(["completed", "completed", "failed", "requested"]), session=session
                )
            some = await found(desk, "finished_at is null limit 30")
            if some and draw.random() < 0.2:
                await desk.cancel([draw.choice(some)], session)
            await desk.admit(await found(desk, "status = 'requested' and attempt > 0 limit 5"), session)
            await session.fetch("select * from fire_due(50)")
            await desk.finish(await found(desk, "status = 'canceling'"), "cancelled", session=session)

    async def changes(self, kind: str) -> None:
        other, draw = Desk(self._desk.database), random.Random(self._seed)
        while time.monotonic() < self._end:
            await asyncio.sleep(0.5)
            await other.apply(*KINDS[kind](draw))
            for state in ("cordoned", "active"):
                await self._desk.session.fetch("update process set state = $1 returning 1", state)
                await asyncio.sleep(0.1)


async def found(desk: Desk, condition: str) -> list[UUID]:
    return [row["id"] for row in await desk.session.fetch(f"select id from execution where {condition}")]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_crowd_under_limits_that_change(desk: Desk, kind: str) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    crowd = Crowd(desk, seed)
    await desk.open(*KINDS[kind](random.Random(seed)))
    await asyncio.gather(
        crowd.client(0), crowd.client(1), crowd.worker(0), crowd.worker(1), crowd.changes(kind)
    )
    left, vain = -1, 0
    while left and vain < 20:
        await desk.timers()
        await desk.tidy()
        await desk.admit(await found(desk, "status = 'requested'"))
        await desk.claim(await found(desk, "status = 'scheduled'"))
        await desk.finish(await found(desk, "status in ('running', 'canceling')"))
        before, left = left, len(await found(desk, "finished_at is null"))
        vain = vain + 1 if left == before else 0
    assert not left, await desk.session.fetch("select * from lane")
    assert await desk.slots() == {}
    await desk.sound()
