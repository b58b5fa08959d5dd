"""Schedules applied again, changed, disabled, paused and deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock import Limit, Schedule
from penstock.errors import DefinitionError, NotFound
from tests.flows import shop
from tests.penstock.store.schedules.conftest import House

REF = "clock.minutely"


def schedule(**options: Any) -> Schedule:
    options = {"action": shop.charge, "params": {"order": 1}, "cron": "* * * * *", **options}
    return Schedule(REF, **options)


async def test_ended_rule_is_refused_unless_disabled(house: House) -> None:
    ended = {"cron": None, "rrule": "DTSTART:20200107T090000 RRULE:FREQ=DAILY;COUNT=3"}
    with pytest.raises(DefinitionError, match="would never fire: its rule has no future instant"):
        await house.apply(*shop.ALL, schedule(**ended))
    await house.apply(*shop.ALL, schedule(**ended, enabled=False))


async def test_applying_again_changes_nothing(house: House) -> None:
    await house.apply(*shop.ALL, schedule())
    before = await house.of(REF)
    await house.apply(*shop.ALL, schedule())
    assert await house.of(REF) == before


async def test_a_change_of_parameters_keeps_the_due_fire(house: House) -> None:
    await house.apply(*shop.ALL, schedule())
    await house.sleep(REF, timedelta(minutes=2))
    before = await house.of(REF)
    await house.apply(*shop.ALL, schedule(params={"order": 2}))
    after = await house.of(REF)
    assert after["since"] == before["since"]
    assert after["next_due"] < datetime.now(UTC)
    await house.fire()
    rows = await house.rows("select distinct params::text from payload")
    assert [row[0] for row in rows] == ['{"order": 2}']


@pytest.mark.parametrize(
    "options",
    [
        {"cron": "0 0 1 1 *"},
        {"timezone": "Asia/Kolkata", "cron": "0 0 1 1 *"},
        {"cron": None, "every": "1000d"},
    ],
)
async def test_a_change_of_times_begins_anew(house: House, options: dict[str, Any]) -> None:
    await house.apply(*shop.ALL, schedule())
    await house.sleep(REF, timedelta(days=3))
    await house.apply(*shop.ALL, schedule(**options))
    assert (await house.of(REF))["next_due"] > datetime.now(UTC) + timedelta(minutes=2)
    assert (await house.fire()).schedules == 0


async def test_a_period_goes_by_the_start_date(house: House) -> None:
    begins = datetime(2100, 5, 5, 9, 30, tzinfo=UTC)
    await house.apply(*shop.ALL, schedule(cron=None, every="7d", starts_at=begins))
    assert (await house.of(REF))["next_due"] == begins
    fires = await house.client.schedules.preview(REF, 2)
    assert [fire.instant for fire in fires] == [begins, begins + timedelta(days=7)]


async def test_a_fire_in_a_pause_is_not_missed(house: House) -> None:
    await house.apply(*shop.ALL, schedule())
    row = await house.client.schedules.disable(REF)
    assert (row.state, row.next_due) == ("disabled", None)
    await house.rows("update schedule set since = since - interval '1 day'")
    assert (await house.fire()).schedules == 0
    row = await house.client.schedules.enable(REF)
    assert row.state == "active"
    assert row.next_due is not None
    assert row.next_due > row.now
    assert (await house.fire()).schedules == 0


async def test_a_disabled_schedule_stays_disabled_when_it_is_applied_again(house: House) -> None:
    await house.apply(*shop.ALL, schedule())
    await house.client.schedules.disable(REF)
    await house.apply(*shop.ALL, schedule(params={"order": 5}))
    assert (await house.of(REF))["next_due"] is None
    rows = await house.rows("select enabled from catalog where kind = 'schedule'")
    assert [row[0] for row in rows] == [False]


async def test_a_schedule_may_be_declared_disabled(house: House) -> None:
    await house.apply(*shop.ALL, schedule(enabled=False))
    assert (await house.of(REF))["next_due"] is None


async def test_a_pause_ends_by_itself(house: House) -> None:
    await house.apply(*shop.ALL, schedule())
    row = await house.client.schedules.pause(REF, 7200)
    assert row.state == "paused"
    assert row.next_due is not None
    assert row.next_due - row.now > timedelta(hours=1, minutes=59)
    await house.apply(*shop.ALL, schedule(params={"order": 5}))
    assert (await house.of(REF))["since"] == row.since, "still paused"
    row = await house.client.schedules.enable(REF)
    assert row.next_due is not None
    assert row.next_due - row.now <= timedelta(minutes=1)


async def test_enabling_an_enabled_schedule_drops_no_due_fire(house: House) -> None:
    await house.apply(*shop.ALL, schedule())
    await house.sleep(REF, timedelta(minutes=1))
    await house.client.schedules.enable(REF)
    assert (await house.fire()).counts == {"created": 1}


async def test_a_deleted_schedule_is_gone_and_its_history_stays(house: House) -> None:
    await house.apply(*shop.ALL, schedule())
    await house.sleep(REF, timedelta(minutes=1))
    await house.fire()
    await house.client.schedules.delete(REF)
    assert await house.client.schedules.all() == []
    assert await house.rows("select from catalog where kind = 'schedule'") == []
    assert len(await house.fires(REF)) == 1
    with pytest.raises(NotFound, match="minutely"):
        await house.client.schedules.get(REF)
    await house.apply(*shop.ALL, schedule())
    assert (await house.of(REF))["next_due"] is not None


async def test_a_schedule_whose_row_was_lost_comes_back_when_it_is_applied(house: House) -> None:
    await house.apply(*shop.ALL, schedule())
    await house.rows("delete from schedule")
    await house.apply(*shop.ALL, schedule())
    assert (await house.of(REF))["next_due"] is not None


@pytest.mark.parametrize("verb", ["enable", "disable", "delete", "run", "history", "stats", "preview"])
async def test_a_schedule_that_does_not_exist_is_named(house: House, verb: str) -> None:
    with pytest.raises(NotFound, match=r"clock\.nothing"):
        await getattr(house.client.schedules, verb)("clock.nothing")


async def test_a_schedule_comes_together_with_the_limit_of_its_action_or_a_change_of_it(house: House) -> None:
    for most, name in ((1, REF), (2, "clock.other")):
        limit = Limit(most, ref="clock.limit", scope="shop.charge")
        await house.apply(
            *shop.ALL, limit, Schedule(name, action=shop.charge, params={"order": 1}, cron="* * * * *")
        )
        [row] = await house.rows(
            "select max from concurrency_limit l join namespace n on l.id = any (n.limits)"
        )
        assert row["max"] == most
