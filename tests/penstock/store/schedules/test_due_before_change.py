"""Fires that were due before a schedule was paused, disabled, deleted or given other times, and that no executor had made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock import MissedFires
from penstock.language.schedules import fire_plan
from penstock.store.schedules import changes, firing
from penstock.store.session.database import Row, Session, Transaction
from tests.flows import shop
from tests.penstock.store.schedules.conftest import House, every_minute

REF = "clock.minutely"
BLOCKED = "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
Change = Callable[[House], Awaitable[object]]


async def pause(house: House) -> None:
    await house.client.schedules.pause(REF, 3600)


async def disable(house: House) -> None:
    await house.client.schedules.disable(REF)


async def disable_and_enable(house: House) -> None:
    await house.client.schedules.disable(REF)
    await house.client.schedules.enable(REF)


async def delete(house: House) -> None:
    await house.client.schedules.delete(REF)


async def put(house: House) -> None:
    await house.client.schedules.put(every_minute(cron="0 0 1 1 *"))


async def apply(house: House) -> None:
    await house.apply(*shop.ALL, every_minute(cron=None, every="1000d"))


CHANGES = pytest.mark.parametrize("change", [pause, disable, disable_and_enable, delete, put, apply])


async def statuses(house: House) -> list[str]:
    return [fire["status"] for fire in await house.fires(REF)]


@CHANGES
async def test_fires_due_before_a_change_are_made_once(house: House, change: Change) -> None:
    await house.apply(*shop.ALL, every_minute())
    await house.sleep(REF, timedelta(minutes=3))
    await change(house)
    assert await statuses(house) == ["created"] * 3
    assert [fire["kind"] for fire in await house.fires(REF)] == ["due"] * 3
    assert await house.statuses() == {"scheduled": 3}
    assert (await house.fire()).schedules == 0
    await house.sound()


@CHANGES
async def test_fires_are_made_while_another_request_clears_the_cache(
    house: House, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.apply(*shop.ALL, every_minute())
    await house.sleep(REF, timedelta(minutes=3))
    fetch = Transaction.fetch

    async def fetch_beside_apply(tx: Transaction, sql: str, *args: Any) -> list[Row]:
        """Fetch rows while another request of this process applies a definition, which clears the cache."""
        tx.cache.clear()
        rows = await fetch(tx, sql, *args)
        tx.cache.clear()
        return rows

    monkeypatch.setattr(Transaction, "fetch", fetch_beside_apply)
    await change(house)
    assert await statuses(house) == ["created"] * 3
    await house.sound()


@CHANGES
async def test_one_time_schedule_due_before_a_change_runs(house: House, change: Change) -> None:
    once = every_minute(cron=None, at=datetime(2100, 1, 1, tzinfo=UTC))
    await house.apply(*shop.ALL, once)
    await house.rows(
        "update definition set body = body || jsonb_build_object('at', clock_timestamp() - interval '1 minute')"
        " where ref = $1",
        REF,
    )
    await house.sleep(REF, timedelta(minutes=2))
    await change(house)
    assert await statuses(house) == ["created"]
    await house.sound()


@CHANGES
async def test_missed_policy_of_the_old_schedule_decides(house: House, change: Change) -> None:
    await house.apply(*shop.ALL, every_minute(missed=MissedFires(policy="skip", grace="150s")))
    await house.sleep(REF, timedelta(minutes=6))
    await change(house)
    fires = await house.fires(REF)
    assert len(fires) == 6
    kinds = {(fire["kind"], fire["status"]) for fire in fires}
    assert kinds == {("missed", "skipped"), ("due", "created")}
    assert [fire["error"] for fire in fires if fire["status"] == "skipped"][-1] == "missed"


async def test_fires_that_would_have_waited_are_skipped_with_the_disable(house: House) -> None:
    await house.apply(*shop.ALL, every_minute(overlap="queue"))
    await house.sleep(REF, timedelta(minutes=3))
    await disable(house)
    assert await statuses(house) == ["created", "skipped", "skipped"]
    assert {fire["error"] for fire in (await house.fires(REF))[1:]} == {"the schedule was disabled"}


async def test_fires_of_a_held_action_are_skipped_with_the_pause(house: House) -> None:
    await house.apply(*shop.ALL, every_minute())
    await house.client.holds.hold("pack", "shop", by="ada")
    await house.sleep(REF, timedelta(minutes=3))
    await pause(house)
    assert await statuses(house) == ["skipped"] * 3
    assert {fire["error"] for fire in await house.fires(REF)} == {
        "not made before the schedule was paused, since its action was held"
    }
    assert await house.statuses() == {}


@pytest.mark.parametrize("is_put_aside", [False, True])
async def test_faulty_schedule_can_be_disabled_and_keeps_its_fires(house: House, is_put_aside: bool) -> None:
    await house.apply(*shop.ALL, every_minute())
    await house.sleep(REF, timedelta(minutes=3))
    if is_put_aside:
        await house.rows(
            "update schedule set error = 'odd', next_due = clock_timestamp() + interval '5 minutes'"
        )
    else:
        await house.rows(
            "create function refuse() returns trigger language plpgsql as"
            " $$ begin raise exception 'not this one' using errcode = '23514'; end $$"
        )
        await house.rows(
            "create trigger refuse before insert on open_fire for each row execute function refuse()"
        )
    await disable(house)
    assert (await house.of(REF))["next_due"] is None
    reason = "not made before the schedule was disabled, since it could not be fired"
    assert {(fire["status"], fire["error"]) for fire in await house.fires(REF)} == {
        ("skipped", reason if is_put_aside else f"{reason}: not this one")
    }
    assert len(await house.fires(REF)) == 3


async def test_fires_beyond_those_of_a_transaction_are_skipped(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firing, "MOST", 2)
    monkeypatch.setattr(fire_plan, "MAX_FIRES", 2)
    monkeypatch.setattr(firing, "NAMED", 3)
    await house.apply(*shop.ALL, every_minute(missed=MissedFires(grace="1h")))
    await house.sleep(REF, timedelta(minutes=8))
    await pause(house)
    fires = await house.fires(REF)
    assert [fire["status"] for fire in fires] == ["created"] * 2 + ["skipped"] * 3
    reason = "not made before the schedule was paused, since more than 2 fires were due"
    assert [fire["error"] for fire in fires[2:]] == [f"{reason}, as were fires before it", reason, reason]
    assert fires[-1]["due_at"] - fires[1]["due_at"] == timedelta(minutes=6)


async def paused(session: Session) -> None:
    async with session.transaction() as tx:
        await changes.pause(tx, REF, 3600)


async def fired(session: Session) -> int:
    async with session.transaction() as tx:
        return (await firing.fire_due(tx, 10)).schedules


async def test_pause_that_waits_for_an_executor_makes_no_second_fire(house: House) -> None:
    await house.apply(*shop.ALL, every_minute())
    await house.sleep(REF, timedelta(minutes=3))
    database = (await house.parts()).database
    async with database.session().transaction() as tx:
        assert (await firing.fire_due(tx, 10)).counts == {"created": 3}
        pauses = [asyncio.create_task(paused(database.session())) for _ in range(2)]
        await house.until(f"{BLOCKED} having count(*) = 2")
    await asyncio.gather(*pauses)
    assert await statuses(house) == ["created"] * 3
    assert await house.statuses() == {"scheduled": 3}
    await house.sound()


async def test_executors_and_a_second_pause_during_a_pause_fire_nothing(house: House) -> None:
    await house.apply(*shop.ALL, every_minute())
    await house.sleep(REF, timedelta(minutes=3))
    database = (await house.parts()).database
    async with database.session().transaction() as tx:
        await changes.pause(tx, REF, 3600)
        assert await asyncio.gather(*(fired(database.session()) for _ in range(2))) == [0, 0]
        second = asyncio.create_task(paused(database.session()))
        await house.until(BLOCKED)
    await second
    assert await fired(database.session()) == 0
    assert await statuses(house) == ["created"] * 3
    assert await house.statuses() == {"scheduled": 3}
    await house.sound()
