"""A place in line is the instant at which an execution, or its retry, became ready. Nothing else moves it."""

from __future__ import annotations

from uuid import UUID

import pytest

from penstock import Limit
from penstock.operate.check import check
from tests.penstock.store.admission.desk import Desk

ONE = Limit(1, ref="shop.one", scope="shop.charge")
RESTAGE = (
    "select messages from restage_lost(interval '0', $1, 100, array['execution.requested', 'work.default'])"
)
RECOVER = "select * from recover_executions($1, array[$2::uuid], 'lost')"
HAND_BACK = (
    "select * from finish_attempts($1, array[$2::uuid], array[1], array['requested'], null, null, null, null, null, "
    "'{}'::uuid[], '{}'::uuid[])"
)
START = UUID(int=0)


@pytest.fixture
async def desk(desk: Desk) -> Desk:
    return await desk.open(ONE)


async def lose_messages(desk: Desk) -> None:
    await desk.session.fetch("delete from outbox")


async def restage(desk: Desk) -> list[UUID]:
    """The executions of which a message is staged anew."""
    [row] = await desk.session.fetch(RESTAGE, START)
    return [id for message in row["messages"] for id in message["ids"]]


async def violated(desk: Desk) -> set[str]:
    return {finding.name for finding in await check(desk.session) if finding.violations}


async def test_an_execution_whose_message_was_lost_is_not_overtaken(desk: Desk) -> None:
    [holder] = await desk.start()
    await desk.claim([holder])
    [lost], [later] = await desk.request(), await desk.start()
    await lose_messages(desk)
    assert await restage(desk) == [lost]
    await desk.admit([lost])
    await desk.finish([holder])
    assert await desk.statuses([lost, later]) == ["scheduled", "queued"]
    await desk.sound()


async def test_lost_messages_are_restaged_once_by_all_replicas(desk: Desk) -> None:
    requested = await desk.request(3)
    await lose_messages(desk)
    assert await restage(desk) == requested
    await lose_messages(desk)
    other = desk.database.session()
    async with desk.session.transaction() as tx:
        await tx.fetch("update live set restaged_at = clock_timestamp()")
        [row] = await other.fetch(RESTAGE, START)
        assert row["messages"] == [], "another replica has them in hand"
    [row] = await desk.session.fetch(RESTAGE.replace("'0'", "'1 hour'"), START)
    assert row["messages"] == []


async def test_an_execution_keeps_its_place_when_its_envelope_is_lost(desk: Desk) -> None:
    [scheduled] = await desk.start()
    [before] = await desk.session.fetch("select ready_at from execution")
    await lose_messages(desk)
    assert await restage(desk) == [scheduled]
    assert await desk.session.fetch("select ready_at from execution") == [before]
    await desk.sound()


@pytest.mark.parametrize("how", [RECOVER, HAND_BACK])
async def test_lost_attempt_keeps_its_place_before_later_ones(desk: Desk, how: str) -> None:
    [first], [second], [third] = await desk.start(), await desk.start(), await desk.start()
    await desk.claim([first])
    await desk.session.fetch(how, desk.worker, first)
    assert await desk.statuses([first, second, third]) == ["scheduled", "queued", "queued"]
    await desk.run([first])
    assert await desk.statuses([second, third]) == ["scheduled", "queued"]
    await desk.sound()


async def test_a_retry_goes_to_the_end_of_the_line(desk: Desk) -> None:
    [first], [second], [third] = await desk.start(), await desk.start(), await desk.start()
    await desk.run([first], "requested")
    await desk.admit([first])
    await desk.run([second])
    assert await desk.statuses([first, third]) == ["queued", "scheduled"]
    await desk.sound()


@pytest.mark.parametrize("when", ["requested", "queued", "admitted", "lost"])
async def test_check_names_executions_with_a_moved_place(desk: Desk, when: str) -> None:
    [holder] = await desk.start()
    [moved] = await desk.request()
    if when != "requested":
        await desk.admit([moved])
    if when == "lost":
        await desk.run([holder])
        await desk.claim([moved])
    await desk.session.fetch(
        "update execution set ready_at = ready_at + interval '9 seconds' where id = $1", moved
    )
    if when == "admitted":
        await desk.session.fetch("update waiter set ready_at = ready_at + interval '9 seconds'")
        await desk.session.fetch("update lane set ready_at = ready_at + interval '9 seconds'")
        await desk.run([holder])
        await desk.run([moved])
    elif when == "lost":
        await desk.session.fetch(RECOVER, desk.worker, moved)
    elif when == "queued":
        await desk.session.fetch("update waiter set ready_at = ready_at + interval '9 seconds'")
        await desk.session.fetch("update lane set ready_at = ready_at + interval '9 seconds'")
    assert await violated(desk) == {"I4r"}
