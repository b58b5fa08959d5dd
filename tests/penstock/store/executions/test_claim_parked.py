"""The parked work that a worker gets, and the rest that stays there: `claim_parked`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from penstock.store.session.database import Session
from tests.penstock.store.executions.test_attempts import Rooms, define, offer, taken
from tests.penstock.store.members import ME
from tests.penstock.store.stand import Stand

HERE, ELSEWHERE = "work.default", "work.other"
PARK = """
insert into parked (execution_id, queue, definition_id, ready_at)
select id, $2, definition_id, ready_at from execution where id = $1 returning 1
"""
PATIENCE = 10.0
"""Seconds for a statement that is to wait for nobody."""


async def park(
    stand: Stand, name: str, hours: float, definition: int | None = None, *, at: str = HERE, **more: Any
) -> None:
    """Make an execution that became ready `hours` ago, and park it."""
    await offer(stand, name, definition, ready=timedelta(hours=hours), **more)
    await stand.sql(PARK, stand.ids[name], at)


async def claim(
    stand: Stand,
    take: int,
    *,
    knows: Sequence[int] = (),
    lacks: Sequence[int] = (),
    rooms: Rooms = (),
    session: Session | None = None,
) -> dict[str, Any]:
    """Return the answer to a worker that knows the definition of the stand, and others."""
    [row] = await (session or stand.session).fetch(
        "select * from claim_parked($1, $1, $2, $3, $4, $5, $6::executor_room[])",
        *(ME, take, HERE, [stand.definition, *knows], list(lacks), list(rooms)),
    )
    return dict(row)


async def parked(stand: Stand, at: str = HERE) -> set[str]:
    return stand.names(
        [
            row["execution_id"]
            for row in await stand.sql("select execution_id from parked where queue = $1", at)
        ]
    )


async def test_where_nothing_is_parked_nothing_waits(stand: Stand) -> None:
    answer = await claim(stand, 9)
    assert answer == {"claimed": [], "unknown": [], "messages": [], "waits": False}


async def test_the_oldest_of_all_definitions_is_taken_and_the_others_stay_parked(stand: Stand) -> None:
    second, lacking = await define(stand, "second", "lacking")
    await park(stand, "younger of the first", 1)
    await park(stand, "older of the first", 2)
    await park(stand, "oldest", 3, second)
    await park(stand, "older, lacking", 4, lacking)
    await park(stand, "older, elsewhere", 5, at=ELSEWHERE)
    answer = await claim(stand, 1, knows=[second], lacks=[lacking])
    assert taken(stand, answer) == {"oldest"}
    assert (answer["unknown"], answer["messages"], answer["waits"]) == ([], [], True)
    assert await parked(stand) == {"younger of the first", "older of the first", "older, lacking"}
    assert await parked(stand, ELSEWHERE) == {"older, elsewhere"}
    answer = await claim(stand, 1, knows=[second], lacks=[lacking])
    assert taken(stand, answer) == {"older of the first"}


async def test_work_without_executor_room_keeps_no_other_waiting(stand: Stand) -> None:
    [second] = await define(stand, "second")
    for hours in (9, 8, 7):
        await park(stand, f"of the first, {hours}", hours)
    await park(stand, "of the second", 1, second)
    answer = await claim(stand, 2, knows=[second], rooms=[(stand.definition, "x", 1)])
    assert taken(stand, answer) == {"of the first, 9", "of the second"}
    assert await parked(stand) == {"of the first, 8", "of the first, 7"}


async def test_work_that_finds_its_task_executor_full_stays_parked(stand: Stand) -> None:
    """Each of two definitions has room for one, and it is the same room."""
    [second] = await define(stand, "second")
    await park(stand, "older", 2)
    await park(stand, "younger", 1, second)
    answer = await claim(stand, 2, knows=[second], rooms=[(stand.definition, "x", 1), (second, "x", 1)])
    assert taken(stand, answer) == {"older"}
    assert await parked(stand) == {"younger"}


async def test_work_that_another_worker_is_taking_is_not_waited_for(stand: Stand) -> None:
    await park(stand, "taken by another", 2)
    await park(stand, "next", 1)
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select from parked where execution_id = $1 for update", stand.ids["taken by another"])
        answer = await claim(stand, 1, session=stand.home.session(timeout=PATIENCE))
    assert taken(stand, answer) == {"next"}
    assert await parked(stand) == {"taken by another"}


async def test_only_ended_or_moved_work_leaves_the_parked_rows(stand: Stand) -> None:
    [not_met] = await define(stand, "not.met")
    await park(stand, "taken", 9)
    await stand.sql(PARK, stand.ids["taken"], ELSEWHERE)
    await park(stand, "not met", 8, not_met)
    await park(stand, "has ended", 7, status="requested")
    await park(stand, "goes elsewhere", 6, queue=ELSEWHERE)
    await park(stand, "has ended, and is not looked at", 5, status="requested")
    answer = await claim(stand, 3)
    assert taken(stand, answer) == {"taken"}
    assert answer["unknown"] == [not_met]
    assert {one["queue"]: stand.names(one["ids"]) for one in answer["messages"]} == {
        ELSEWHERE: {"goes elsewhere"}
    }
    assert await parked(stand) == {"not met", "has ended, and is not looked at"}
    assert await parked(stand, ELSEWHERE) == {"taken"}
