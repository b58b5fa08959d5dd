"""The settling of fires, and the fate of those with a lost execution."""

from __future__ import annotations

from datetime import timedelta

import orjson

from penstock import Schedule
from penstock.store.schedules import fire_ends
from tests.flows import shop
from tests.penstock.store.schedules.conftest import House

REF = "clock.minutely"


async def one_fire(house: House) -> None:
    await house.apply(*shop.ALL, Schedule(REF, action=shop.charge, params={"order": 1}, cron="* * * * *"))
    await house.sleep(REF, timedelta(minutes=1))
    await house.fire()


async def settle(house: House) -> tuple[int, int]:
    done: tuple[int, int] = await house.change(lambda tx: fire_ends.settle(tx, 100))
    return done


async def lose(house: House) -> None:
    """Lose an execution, as a partial restore or a careless hand does."""
    await house.rows("delete from execution")
    await house.rows("delete from payload")
    await house.rows("delete from live")


async def test_the_outcome_and_the_error_of_a_run_are_kept_with_its_fire(house: House) -> None:
    await one_fire(house)
    assert await settle(house) == (0, 0)
    await house.end("failed", '{"type": "ValueError", "message": "no"}')
    assert await settle(house) == (1, 0)
    [fire] = await house.fires(REF)
    assert (fire["status"], fire["outcome"], fire["error"]) == ("created", "failed", "ValueError: no")
    assert fire["ended_at"] is not None
    assert await house.rows("select from open_fire") == []


async def test_a_run_that_was_archived_before_any_look_is_settled_too(house: House) -> None:
    await one_fire(house)
    await house.end()
    await house.rows("insert into finished (ids) select array_agg(id) from execution")
    await house.rows("select * from archive_finished(interval '0', 10)")
    assert await house.statuses() == {}
    assert await settle(house) == (0, 0)
    [fire] = await house.fires(REF)
    assert (fire["outcome"], fire["recoveries"]) == ("completed", 0)
    assert await house.rows("select from open_fire") == []


async def test_a_lost_execution_is_replaced_and_the_run_is_told(house: House) -> None:
    await one_fire(house)
    [before] = await house.fires(REF)
    await lose(house)
    assert await settle(house) == (0, 1)
    [after] = await house.fires(REF)
    assert after["execution_id"] != before["execution_id"]
    assert (after["status"], after["recoveries"], after["due_at"]) == ("created", 1, before["due_at"])
    [row] = await house.rows("select execution_id, options::text from payload")
    assert row["execution_id"] == after["execution_id"] == (await house.of(REF))["last_execution"]
    assert orjson.loads(row["options"])["context"]["is_recovery"] is True
    assert await settle(house) == (0, 0)


async def test_recovery_is_bounded(house: House) -> None:
    await one_fire(house)
    for _ in range(fire_ends.MOST_RECOVERIES):
        await lose(house)
        assert await settle(house) == (0, 1)
    await lose(house)
    assert await settle(house) == (0, 0)
    [fire] = await house.fires(REF)
    assert (fire["status"], fire["error"]) == ("failed", "its execution was lost 4 times")
    assert await house.statuses() == {}
    assert await settle(house) == (0, 0)


async def test_two_replicas_replace_a_lost_execution_once(house: House) -> None:
    await one_fire(house)
    await lose(house)
    other = (await house.parts()).database.session()
    async with other.transaction() as tx:
        assert await fire_ends.settle(tx, 100) == (0, 1)
        assert await settle(house) == (0, 0)
    assert await settle(house) == (0, 0)
    assert await house.statuses() == {"scheduled": 1}


async def test_a_lost_fire_of_a_deleted_schedule_stays_lost(house: House) -> None:
    await one_fire(house)
    await house.client.schedules.delete(REF)
    await lose(house)
    assert await settle(house) == (0, 0)
    [fire] = await house.fires(REF)
    assert fire["status"] == "failed"
    assert "deleted" in fire["error"]
