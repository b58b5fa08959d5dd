"""The fires that no replica made in time: which of them are made up for, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from penstock import MissedFires
from tests.flows import shop
from tests.penstock.store.schedules.conftest import House, every_minute

HOUR = timedelta(hours=1)


async def test_after_an_outage_the_latest_fire_stands_for_those_missed(house: House) -> None:
    await house.apply(*shop.ALL, every_minute())
    await house.sleep("clock.minutely", HOUR)
    fired = await house.fire()
    fires = await house.fires("clock.minutely")
    missed = [fire for fire in fires if fire["kind"] == "missed"]
    # Those of the last five minutes are in time; one of the others runs.
    assert [fire["status"] for fire in missed].count("created") == 1
    assert missed[-1]["status"] == "created"
    assert {fire["status"] for fire in fires if fire["kind"] == "due"} == {"created"}
    assert fires[0]["error"] in ("missed", "missed, as were fires before it")
    assert fired.missed == len(missed) == 50 + 1


async def test_all_missed_fires_are_made_up_for_within_the_cap_and_spread(house: House) -> None:
    policy = MissedFires(catch_up="all", at_most=20, spread=100, policy="delay", delay=60)
    await house.apply(*shop.ALL, every_minute(missed=policy))
    await house.sleep("clock.minutely", HOUR)
    await house.fire()
    [[created]] = await house.rows("select count(*) from fire where kind = 'missed' and status = 'created'")
    assert created == 20
    rows = await house.rows(
        "select e.not_before - lag(e.not_before) over (order by f.due_at) as apart, e.status, e.not_before - f.made_at as wait "
        "from fire f join execution e on e.id = f.execution_id where f.kind = 'missed' order by f.due_at"
    )
    assert {row["status"] for row in rows} == {"requested"}
    assert {row["apart"] for row in rows[1:]} == {timedelta(seconds=5)}
    assert abs(rows[0]["wait"] - timedelta(minutes=1)) < timedelta(seconds=5)


async def test_a_backlog_larger_than_a_transaction_is_worked_off_in_several(house: House) -> None:
    policy = MissedFires(catch_up="all", at_most=2000)
    await house.apply(
        *shop.ALL, every_minute("clock.s0", missed=policy), every_minute("clock.s1", missed=policy)
    )
    await house.rows("update schedule set since = since - interval '25 hours', next_due = clock_timestamp()")
    turns = 0
    while (await house.fire()).schedules:
        turns += 1
    assert turns >= 3
    rows = await house.rows(
        "select schedule, count(*), min(due_at), max(due_at) from fire group by 1 order by 1"
    )
    for row in rows:
        assert row["count"] == (row["max"] - row["min"]) // timedelta(minutes=1) + 1
        assert 1499 <= row["count"] <= 1501
    assert await house.statuses() == {"scheduled": sum(row["count"] for row in rows)}


async def test_missed_fires_can_be_dropped(house: House) -> None:
    await house.apply(*shop.ALL, every_minute(missed=MissedFires(policy="skip", grace=0)))
    await house.sleep("clock.minutely", HOUR)
    fired = await house.fire()
    assert set(fired.counts) <= {"skipped", "created"}
    assert fired.counts.get("created", 0) <= 1
    assert (await house.of("clock.minutely"))["next_due"] > datetime.now(UTC) - HOUR
