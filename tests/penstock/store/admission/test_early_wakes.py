"""Executions that release their slots as they begin to wait, and go on in the same transaction, since their wait is over."""

from __future__ import annotations

from uuid import UUID

import orjson
import pytest

from penstock import Limit
from penstock.operate.check import check
from tests.penstock.store.admission.desk import Desk

ONE = Limit(1, ref="shop.one", scope="shop.charge")
STATUS = "select status from execution where id = $1"
SLOTS = "select execution_id from slot"


async def status(desk: Desk, id: UUID) -> str:
    return str((await desk.session.fetch(STATUS, id))[0]["status"])


async def holders(desk: Desk) -> set[UUID]:
    return {row["execution_id"] for row in await desk.session.fetch(SLOTS)}


async def begin_to_wait(desk: Desk, id: UUID, why: str) -> None:
    """End the attempt with a wait that is over already."""
    if why == "child":
        [child] = await desk.start(1, "shop.refund")
        await desk.run([child])
        asked = {"awaits": {"until": None, "children": [str(child)], "signals": []}}
    elif why == "end":
        await desk.session.fetch("update execution set ends_as = 'cancelled' where id = $1", id)
        asked = {"awaits": {"until": None, "children": [], "signals": []}}
    else:
        asked = {"outside": {"id": None, "heartbeat": None, "timeout": None}}
        await desk.session.fetch(
            "insert into outside_wait (execution_id, attempt, tenant, outcome) values ($1, 1, 'public', $2::text::jsonb)",
            *(
                id,
                orjson.dumps({"result": None, "error": {"type": "x"}, "reason": "no", "delay": 0}).decode(),
            ),
        )
    await desk.finish([id], "waiting", asked=orjson.dumps(asked).decode())


@pytest.mark.parametrize("why", ["child", "end", "outcome"])
async def test_execution_woken_at_once_keeps_its_place_in_line(desk: Desk, why: str) -> None:
    await desk.open(ONE)
    [first] = await desk.start()
    assert await desk.claim([first]) == [first]
    [second] = await desk.start()
    assert await status(desk, second) == "queued"
    await begin_to_wait(desk, first, why)
    assert (await status(desk, second), await status(desk, first)) == ("scheduled", "queued")
    assert await holders(desk) == {second}
    assert not [checked for checked in await check(desk.session) if checked.violations]
    await desk.run([second])
    assert await status(desk, first) == "scheduled"
    assert await holders(desk) == {first}


@pytest.mark.parametrize("why", ["child", "end", "outcome"])
async def test_execution_woken_at_once_keeps_its_new_slot(desk: Desk, why: str) -> None:
    await desk.open(ONE)
    [first] = await desk.start()
    assert await desk.claim([first]) == [first]
    await begin_to_wait(desk, first, why)
    assert await status(desk, first) == "scheduled"
    assert await holders(desk) == {first}
    [second] = await desk.start()
    assert await status(desk, second) == "queued", "a limit of one has one holder"
    assert not [checked for checked in await check(desk.session) if checked.violations]
