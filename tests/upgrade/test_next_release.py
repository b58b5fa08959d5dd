"""A release is upgraded replica by replica: the schema first, under the replicas of the release before, and back by one."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from uuid import UUID

import pytest

from penstock.store.schema import migrate as schema
from tests.crash.processes import Fleet, Started
from tests.crash.shapes import ALL, result
from tests.flows import shop
from tests.flows.installation import Installation
from tests.upgrade.releases import NEXT, migrate, next_release

WAVE = 60
"""Executions that are started each time the installation changes; and a workflow of nine."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "services.log"


def worker(fleet: Fleet) -> Started:
    return fleet.start("worker", "--module", "tests.flows.shop", "--module", "tests.crash.shapes")


async def wave(house: Installation, number: int) -> list[UUID]:
    ids = await house.client.start_many(
        "shop.sturdy", [{"n": number * WAVE + place} for place in range(WAVE)]
    )
    return [*ids, await house.client.start("cr.shapes", {"n": number})]


async def leave(fleet: Fleet, replica: Started) -> None:
    """Drain it, as a rolling upgrade does."""
    replica.send_signal(signal.SIGTERM)
    await asyncio.to_thread(replica.wait, 30)
    fleet.alive.remove(replica)


async def test_replicas_of_the_release_before_work_while_the_next_one_is_put_in_their_place(
    house: Installation, database: str, broker: str | None, log: Path, tmp_path: Path
) -> None:
    await house.apply(*shop.ALL, shop.sturdy, *ALL)
    after = next_release(tmp_path / "next", schema.newest())
    started: list[UUID] = []
    with Fleet(database, broker, log) as before, Fleet(database, broker, log, release=after) as upgraded:
        old = [before.executor(), worker(before)]
        started += await wave(house, 0)
        await asyncio.to_thread(migrate, after, before.environment)
        started += await wave(house, 1)  # the release before, on the schema of the next
        new = [upgraded.executor(), worker(upgraded)]
        started += await wave(house, 2)  # both
        for replica in old:
            await leave(before, replica)
        started += await wave(house, 3)  # the next one alone
        before.executor()
        worker(before)
        for replica in new:
            await leave(upgraded, replica)
        started += await wave(house, 4)  # back by one: its replicas start on the newer schema
        await house.until(
            "select 1 where not exists (select from execution where finished_at is null)", seconds=90
        )
    assert set(await house.statuses()) == {"completed"}, log.read_text()[-3000:]
    flows = [await house.client.result(id) for id in started[WAVE :: WAVE + 1]]
    assert flows == [result(number) for number in range(5)]
    assert len(await house.rows("select from execution where parent is null")) == len(started)
    assert {row["release"] for row in await house.rows("select release from penstock_function")} == {NEXT}
    await house.sound()
