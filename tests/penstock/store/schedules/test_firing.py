"""One fire, one execution, and the next time: together or not at all."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import orjson
import pytest

from penstock import RetryPolicy, Schedule, action
from penstock.store.schedules import firing
from penstock.store.session.database import Session
from tests.flows import shop
from tests.penstock.store.schedules.conftest import House, every_minute


@action(pack="clock")
async def note(at: str, again: bool = False, who: str = "") -> str:
    return at


async def test_a_due_schedule_gets_its_fire_its_execution_and_its_next_time_in_one_transaction(
    house: House,
) -> None:
    await house.apply(*shop.ALL, every_minute())
    await house.sleep("clock.minutely", timedelta(minutes=1))
    fired = await house.fire()
    assert (fired.schedules, fired.counts) == (1, {"created": 1})
    [fire] = await house.fires("clock.minutely")
    assert (fire["status"], fire["kind"], fire["outcome"]) == ("created", "due", None)
    assert fire["due_at"].second == 0
    [execution] = await house.rows(
        "select e.*, p.params::text as params from execution e join payload p on p.execution_id = e.id"
    )
    assert execution["id"] == fire["execution_id"]
    assert execution["status"] == "scheduled"
    assert orjson.loads(execution["params"]) == {"order": 1}
    after = await house.of("clock.minutely")
    assert after["next_due"] == fire["made_at"].replace(second=0, microsecond=0) + timedelta(minutes=1)
    assert after["since"] == after["last_due"] == fire["due_at"]
    assert after["last_execution"] == fire["execution_id"]
    assert (await house.fire()).schedules == 0


async def test_a_crash_before_the_commit_leaves_the_schedule_due_and_another_fires_it(house: House) -> None:
    await house.apply(*shop.ALL, every_minute())
    await house.sleep("clock.minutely", timedelta(minutes=1))
    doomed: Session = (await house.parts()).database.session()

    async def dies() -> None:
        async with doomed.transaction() as tx:
            assert (await firing.fire_due(tx, 10)).counts == {"created": 1}
            tx.connection.terminate()

    with pytest.raises((asyncpg.InterfaceError, asyncpg.PostgresError)):
        await dies()
    assert await house.fires("clock.minutely") == []
    assert await house.statuses() == {}
    async with asyncio.timeout(
        30
    ):  # the server holds the dead one's locks until it sees that its connection is gone
        while not (counts := (await house.fire()).counts):
            await asyncio.sleep(0.02)
    assert counts == {"created": 1}


async def test_a_schedule_held_by_one_replica_is_skipped_by_the_others(house: House) -> None:
    await house.apply(*shop.ALL, every_minute("clock.a"), every_minute("clock.b"))
    await house.sleep("clock.a", timedelta(minutes=1))
    await house.sleep("clock.b", timedelta(minutes=1))
    other: Session = (await house.parts()).database.session()
    async with other.transaction() as tx:
        assert (await firing.fire_due(tx, 1)).schedules == 1
        assert (await house.fire()).schedules == 1
        assert (await house.fire()).schedules == 0
    assert await house.statuses() == {"scheduled": 2}


async def test_many_replicas_fire_each_instant_once(house: House) -> None:
    await house.apply(*shop.ALL, *(every_minute(f"clock.s{n}") for n in range(60)))
    await house.rows("update schedule set since = since - interval '1 minute', next_due = clock_timestamp()")
    sessions = [(await house.parts()).database.session() for _ in range(4)]

    async def replica(session: Session) -> int:
        count = 0
        for _ in range(30):
            async with session.transaction() as tx:
                count += (await firing.fire_due(tx, 7)).counts.get("created", 0)
        return count

    assert sum(await asyncio.gather(*map(replica, sessions))) == 60
    assert await house.statuses() == {"scheduled": 60}
    assert len(await house.rows("select distinct execution_id from fire")) == 60


async def test_an_instant_that_has_a_fire_never_gets_another(house: House) -> None:
    await house.apply(*shop.ALL, every_minute())
    for _ in range(2):  # the second time as if the schedule's row had been restored from a backup
        await house.rows(
            "update schedule set since = date_trunc('minute', clock_timestamp()) - interval '1 s', "
            "next_due = date_trunc('minute', clock_timestamp())"
        )
        await house.fire()
    assert len(await house.fires("clock.minutely")) == len(await house.rows("select from execution")) == 1


async def test_parameters_are_rendered_from_the_context_of_the_fire(house: House) -> None:
    hour = (datetime.now(told_zone()).hour + 12) % 24  # nothing is due today at about this time
    told = Schedule(
        "clock.told",
        action=note,
        cron=f"0 {hour} * * *",
        timezone="Asia/Kathmandu",
        params={
            "at": "{{ scheduled_time }}",
            "again": "{{ is_recovery }}",
            "who": "{{ region }}/{{ context.schedule }}",
        },
        context={"region": "east"},
        retry=RetryPolicy(max_attempts=4),
    )
    await house.apply(note, told)
    first = datetime(2026, 3, 1, hour, tzinfo=told_zone())
    await house.rows(
        "update schedule set since = $1, next_due = $2 returning 1", first - timedelta(hours=6), first
    )
    await house.fire()
    [row] = await house.rows("select params::text, options::text, origin::text from payload")
    fire = (await house.fires("clock.told"))[-1]
    assert fire["kind"] == "missed"
    local = fire["due_at"].astimezone(tz=None).astimezone(told_zone())
    assert orjson.loads(row["params"]) == {"at": local.isoformat(), "again": False, "who": "east/clock.told"}
    assert local.isoformat().endswith(f"T{hour:02}:00:00+05:45")
    options = orjson.loads(row["options"])
    assert options["retry"] == {"max_attempts": 4}
    assert options["context"] == {
        "region": "east",
        "schedule": "clock.told",
        "scheduled_time": local.isoformat(),
        "timezone": "Asia/Kathmandu",
        "expression": f"0 {hour} * * *",
        "is_recovery": False,
        "is_missed": True,
        "is_backfill": False,
    }
    assert orjson.loads(row["origin"])["schedule"] == "clock.told"


def told_zone() -> Any:
    from zoneinfo import ZoneInfo

    return ZoneInfo("Asia/Kathmandu")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"action": note, "params": {"at": ""}}, "clock.note is not registered"),
        ({"params": {"order": "{{ timezone.nothing }}"}}, "nothing"),
        ({"params": {"order": "{{ timezone }}"}}, "order"),
    ],
)
async def test_a_fire_that_cannot_start_is_kept_as_failed_and_the_schedule_goes_on(
    house: House, options: dict[str, Any], says: str
) -> None:
    await house.apply(*shop.ALL, note, every_minute(**options))
    await house.rows("delete from catalog where ref = 'clock.note'")
    await house.sleep("clock.minutely", timedelta(minutes=1))
    assert (await house.fire()).counts == {"failed": 1}
    [fire] = await house.fires("clock.minutely")
    assert says in fire["error"]
    assert fire["execution_id"] is None
    assert (await house.of("clock.minutely"))["next_due"] > fire["due_at"]
    assert await house.statuses() == {}


async def test_a_schedule_that_cannot_be_planned_is_put_aside_and_loses_nothing(house: House) -> None:
    await house.apply(*shop.ALL, every_minute("clock.good"), every_minute("clock.odd"))
    await house.rows(
        "update definition set body = body || '{\"timezone\": \"Mars/Olympus\"}' where ref = 'clock.odd'"
    )
    await house.rows("update schedule set since = since - interval '1 minute', next_due = clock_timestamp()")
    assert (await house.fire()).counts == {"created": 1}
    odd = await house.of("clock.odd")
    assert "Mars/Olympus" in odd["error"]
    assert odd["since"] < odd["updated_at"] < odd["next_due"]
    assert await house.fires("clock.odd") == []


async def test_jitter_delays_the_start_and_not_the_fire(house: House) -> None:
    await house.apply(*shop.ALL, every_minute(jitter="10h"))
    await house.sleep("clock.minutely", timedelta(minutes=1))
    await house.fire()
    [row] = await house.rows(
        "select e.status, e.not_before from fire f join execution e on e.id = f.execution_id"
    )
    assert row["status"] == "requested"
    assert row["not_before"] is not None


async def test_a_one_shot_schedule_fires_once_and_is_over(house: House) -> None:
    await house.apply(*shop.ALL, every_minute("clock.once", cron=None, at=datetime(2100, 1, 1, tzinfo=UTC)))
    row = await house.of("clock.once")
    assert row["next_due"] == datetime(2100, 1, 1, tzinfo=UTC)
    await house.rows(
        "update definition set body = body || '{\"at\": \"2026-01-01T00:00:00+00:00\"}' where ref = 'clock.once'"
    )
    await house.rows("update schedule set since = '2025-12-31', next_due = '2026-01-01'")
    assert (await house.fire()).counts == {"created": 1}
    assert (await house.of("clock.once"))["next_due"] is None
    assert (await house.fire()).schedules == 0


async def test_nothing_fires_outside_of_the_start_and_end_dates(house: House) -> None:
    await house.apply(
        *shop.ALL,
        every_minute("clock.early", starts_at="2100-01-01T00:00:30+00:00"),
        every_minute("clock.late", ends_at="2020-01-01T00:00:00+00:00"),
    )
    assert (await house.of("clock.early"))["next_due"] == datetime(2100, 1, 1, 0, 1, tzinfo=UTC)
    assert (await house.of("clock.late"))["next_due"] is None
    await house.sleep("clock.early", timedelta(minutes=1))
    assert (await house.fire()).counts == {}
    assert (await house.of("clock.early"))["next_due"] == datetime(2100, 1, 1, 0, 1, tzinfo=UTC)
