"""No item waits in the buffer of a busy worker while another worker of its route has a free slot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock import action
from tests.flows.installation import Installation

held, release = asyncio.Event(), asyncio.Event()


@action(pack="fair")
async def hold() -> str:
    held.set()
    await release.wait()
    return "released"


@action(pack="fair")
async def brief(n: int) -> int:
    return n


async def test_new_work_beside_a_slow_worker_goes_to_the_idle_one(house: Installation) -> None:
    held.clear()
    release.clear()
    await house.apply(hold, brief)
    await house.executor()
    await house.worker(hold, brief, concurrency=1)
    slow = await house.client.start("fair.hold")
    await held.wait()
    await house.worker(hold, brief, concurrency=1)
    await house.client.start_many("fair.brief", [{"n": n} for n in range(60)])
    await house.until("select 1 from execution where status = 'completed' having count(*) = 60", seconds=60)
    release.set()
    assert await house.client.result(slow, timeout=20) == "released"
    await house.sound()


async def test_the_rest_of_an_envelope_goes_to_the_idle_worker_when_its_first_is_slow(
    house: Installation,
) -> None:
    held.clear()
    release.clear()
    await house.apply(hold, brief)
    await house.executor()
    await house.worker(hold, brief, concurrency=1)
    await house.worker(hold, brief, concurrency=1)
    connection = await house.client.database.connect()
    async with connection.transaction():  # one commit, so that they travel together
        for ref, params in [("fair.hold", {}), *(("fair.brief", {"n": n}) for n in range(19))]:
            await house.client.start(ref, params, connection=connection)
    await connection.close()
    await held.wait()
    await house.until("select 1 from execution where status = 'completed' having count(*) = 19")
    release.set()
    await house.quiet()
    await house.sound()


async def test_a_small_worker_hands_on_surplus_of_an_unknown_action(
    make_house: Callable[..., Installation],
) -> None:
    held.clear()
    release.clear()
    async with make_house(restage_age=3600.0) as house:
        await house.apply(brief)
        await house.executor()
        await house.client.start_many("fair.brief", [{"n": n} for n in range(20)])
        await house.until("select 1 from execution where status = 'scheduled' having count(*) = 20")
        await house.worker(brief, concurrency=5)
        await house.until("select 1 from execution where status = 'completed' having count(*) = 20")


async def test_long_work_travels_alone_and_brief_work_together(house: Installation) -> None:
    await house.apply(lasting, brief)
    await house.session.fetch("update namespace set envelope = 1 where action = 'fair.brief'")
    await house.executor()
    await house.worker(lasting, brief)
    await house.client.run("fair.lasting", timeout=20)
    await house.client.start_many("fair.brief", [{"n": n} for n in range(20)])
    await house.until("select 1 from namespace where action = 'fair.lasting' and envelope = 1")
    await house.quiet()
    await house.client.start_many("fair.lasting", [{}, {}, {}])
    await house.until("select 1 from namespace where action = 'fair.brief' and envelope = 20")
    await house.quiet()


@action(pack="fair")
async def lasting() -> None:
    await asyncio.sleep(1.2)
