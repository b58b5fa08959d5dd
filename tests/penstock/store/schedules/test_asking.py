"""The fires that a person requests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from penstock import Schedule
from penstock.errors import InvalidInput
from tests.flows import shop
from tests.penstock.store.schedules.conftest import House

REF = "clock.daily"
FIRST, LAST = datetime(2026, 3, 27, tzinfo=UTC), datetime(2026, 3, 31, tzinfo=UTC)


async def daily(house: House, **options: Any) -> None:
    options = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", **options}
    await house.apply(*shop.ALL, Schedule(REF, action=shop.charge, params={"order": 1}, **options))


async def test_a_dry_run_shows_the_starts_and_starts_nothing(house: House) -> None:
    await daily(house)
    asked = await house.client.schedules.backfill(REF, FIRST, LAST, dry_run=True)
    assert [f"{one.due:%d %H:%M}" for one in asked] == ["27 01:30", "28 01:30", "29 01:00", "30 00:30"]
    assert all(one.starts and one.status is None for one in asked)
    assert await house.statuses() == {}


async def test_a_backfill_starts_each_fire_of_the_range_once(house: House) -> None:
    await daily(house)
    before = await house.of(REF)
    for started in (4, 0):
        asked = await house.client.schedules.backfill(REF, FIRST, LAST)
        assert sum(one.starts for one in asked) == started
        assert await house.statuses() == {"scheduled": 4}
    fires = await house.fires(REF)
    assert {(fire["kind"], fire["status"]) for fire in fires} == {("backfill", "created")}
    contexts = [
        orjson.loads(row[0])["context"] for row in await house.rows("select options::text from payload")
    ]
    assert sorted(c["scheduled_time"] for c in contexts)[2] == "2026-03-29T03:00:00+02:00"
    assert all(c["is_backfill"] for c in contexts)
    after = await house.of(REF)
    assert (after["since"], after["next_due"]) == (before["since"], before["next_due"])


async def test_a_backfill_starts_the_skipped_fires(house: House) -> None:
    await daily(house, overlap="skip")
    await house.rows(
        "insert into fire (schedule, due_at, status, kind, definition_id, error) "
        "select ref, '2026-03-28T01:30Z', 'skipped', 'missed', definition_id, 'missed' from schedule"
    )
    asked = await house.client.schedules.backfill(REF, FIRST, LAST)
    assert [one.status for one in asked] == [None, "skipped", None, None]
    statuses = [row["status"] for row in await house.fires(REF)]
    assert statuses == ["created", "queued", "queued", "queued"], "one after another"
    assert (await house.fires(REF))[1]["error"] is None


async def test_a_backfill_leaves_future_fires_to_the_schedule(house: House) -> None:
    await daily(house, cron="* * * * *")
    now = datetime.now(UTC)
    asked = await house.client.schedules.backfill(REF, now - timedelta(minutes=3), now + timedelta(days=1))
    assert len(asked) in (3, 4)


async def test_a_backfill_keeps_to_the_start_and_end_dates(house: House) -> None:
    await daily(house, starts_at="2026-03-28T00:00:00+00:00", ends_at="2026-03-29T01:00:00+00:00")
    asked = await house.client.schedules.backfill(REF, FIRST, LAST, dry_run=True)
    assert [one.due.day for one in asked] == [28, 29]


async def test_a_backfill_that_is_too_large_is_refused_with_where_to_stop(house: House) -> None:
    await daily(house, cron="* * * * *")
    with pytest.raises(InvalidInput, match="10000") as caught:
        await house.client.schedules.backfill(
            REF, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
        )
    assert "2026-01-07T22:39:00" in str(caught.value.hint)


async def test_backfill_refuses_range_that_ends_before_it_begins(house: House) -> None:
    await daily(house)
    for dry_run in (True, False):
        with pytest.raises(InvalidInput, match="ends before it begins"):
            await house.client.schedules.backfill(REF, LAST, FIRST, dry_run=dry_run)
    assert await house.statuses() == {}


async def test_a_schedule_can_be_fired_now_also_when_it_is_disabled(house: House) -> None:
    await daily(house)
    await house.client.schedules.disable(REF)
    row = await house.client.schedules.run(REF)
    assert (row.kind, row.status) == ("manual", "created")
    assert await house.statuses() == {"scheduled": 1}
    assert (await house.of(REF))["next_due"] is None


async def test_firing_now_keeps_to_the_overlap_policy(house: House) -> None:
    await daily(house, overlap="skip")
    assert (await house.client.schedules.run(REF)).status == "created"
    row = await house.client.schedules.run(REF)
    assert (row.status, row.execution_id) == ("skipped", None)
    assert "had not ended" in (row.error or "")
