"""The health check names what is wrong, and figures count it."""

from __future__ import annotations

from datetime import timedelta

from penstock import Schedule
from penstock.store.schedules import figures as figures
from penstock.store.schedules import fire_ends, health
from tests.flows import shop
from tests.penstock.store.schedules.conftest import House


async def three(house: House) -> None:
    names = ("clock.a", "clock.b", "clock.c")
    await house.apply(
        *shop.ALL, *(Schedule(n, action=shop.charge, params={"order": 1}, cron="* * * * *") for n in names)
    )


async def executor(house: House) -> None:
    await house.rows("insert into process (id, kind, name) values (gen_random_uuid(), 'executor', 'here')")


async def named(house: House) -> set[tuple[str, str | None]]:
    return {(one.kind, one.schedule) for one in await house.client.schedules.health()}


async def test_nothing_is_wrong_where_there_is_nothing(house: House) -> None:
    assert await named(house) == set()


async def test_without_an_executor_nothing_fires(house: House) -> None:
    await three(house)
    assert await named(house) == {("no executor", None)}
    await executor(house)
    assert await named(house) == set()


async def test_a_schedule_that_is_not_fired_is_late(house: House) -> None:
    await three(house)
    await executor(house)
    await house.rows(
        "update schedule set next_due = clock_timestamp() - interval '5 minutes' where ref = 'clock.b'"
    )
    assert await named(house) == {("late", "clock.b")}
    assert (await figures.figures(house.session, health.LATE, 300)).late == 1


async def test_a_schedule_that_cannot_be_planned_is_broken(house: House) -> None:
    await three(house)
    await executor(house)
    await house.rows(
        "update definition set body = body || '{\"timezone\": \"Mars/Olympus\"}' where ref = 'clock.c'"
    )
    await house.sleep("clock.c", timedelta(minutes=1))
    await house.fire()
    assert await named(house) == {("broken", "clock.c")}
    assert (await figures.figures(house.session, health.LATE, 300)).broken == 1


async def test_a_schedule_whose_last_run_failed_is_erroring_until_one_ends_well(house: House) -> None:
    await three(house)
    await executor(house)
    for status, expected in (("failed", {("erroring", "clock.a")}), ("completed", set())):
        await house.rows("update fire set due_at = due_at - interval '1 minute'")
        await house.sleep("clock.a", timedelta(minutes=1))
        await house.fire()
        running = await figures.figures(house.session, health.LATE, 300)
        assert running.erroring == len(await named(house)), "a run that has begun is not an end"
        await house.end(status)
        await house.change(lambda tx: fire_ends.settle(tx, 10))
        assert await named(house) == expected
        read = await figures.figures(house.session, health.LATE, 300)
        assert read.erroring == len(expected)
    assert (read.total, read.active, read.failure_rate) == (3, 3, 0.5)
    assert read.per_minute == 2 * 60 / 300


async def test_a_fire_that_could_not_start_is_an_error_too(house: House) -> None:
    await three(house)
    await executor(house)
    await house.rows("delete from catalog where ref = 'shop.charge'")
    await house.sleep("clock.a", timedelta(minutes=1))
    await house.fire()
    assert await named(house) == {("erroring", "clock.a")}


async def test_fires_that_do_not_run_are_orphaned(house: House) -> None:
    await three(house)
    await executor(house)
    await house.sleep("clock.a", timedelta(minutes=1))
    await house.fire()
    assert await named(house) == set()
    # A minute may have begun meanwhile, and the other two have fired.
    await house.rows("update open_fire set made_at = made_at - interval '1 hour' where schedule = 'clock.a'")
    await house.rows(
        "update execution set since = ready_at - interval '1 hour' "
        "where id in (select execution_id from open_fire where schedule = 'clock.a')"
    )
    assert await named(house) == {("orphaned", "clock.a")}
    await house.rows("update execution set status = 'running', attempt = 1, claim = id")
    assert await named(house) == set(), "one that runs long is not trouble yet"


async def test_many_missed_fires_and_many_stalled_runs_are_trouble(house: House) -> None:
    await three(house)
    await executor(house)
    await house.sleep("clock.a", timedelta(hours=1))
    await house.fire()
    assert await named(house) == {("missed", "clock.a")}
    [missed] = await house.client.schedules.health()
    assert missed.says == "at least 51 start times were missed in the last hour"
    assert missed.hint == "`penstock schedule history clock.a` shows them."
    await house.rows("update fire set kind = 'due'")
    # A minute may have begun meanwhile, and the other two have fired.
    await house.rows("update open_fire set made_at = made_at - interval '1 hour' where schedule = 'clock.a'")
    await house.rows(
        "update execution set status = 'running', attempt = 1, claim = id, since = ready_at - interval '1 hour' "
        "where id in (select execution_id from open_fire where schedule = 'clock.a')"
    )
    await house.rows(
        "insert into open_fire (execution_id, schedule, due_at, made_at) "
        "select id, 'clock.b', now(), '2020-01-01' from execution on conflict do nothing"
    )
    assert await named(house) == {("stalled", "clock.a")}


async def clock_goes_back(house: House, hours: int) -> None:
    """Move all that the schedules have fired into the future, as if the database's clock had gone back since."""
    await house.rows("update fire set due_at = due_at + make_interval(hours => $1)", hours)
    await house.rows(
        "update schedule set since = since + make_interval(hours => $1), next_due = next_due + make_interval(hours => $1), "
        "last_due = last_due + make_interval(hours => $1)",
        hours,
    )


async def test_schedule_ahead_of_the_clock_is_named_and_not_called_paused(house: House) -> None:
    await three(house)
    await executor(house)
    for ref in ("clock.a", "clock.b", "clock.c"):
        await house.sleep(ref, timedelta(minutes=1))
    await house.fire()
    await house.client.schedules.pause("clock.c", 3 * 3600)
    await clock_goes_back(house, 2)
    assert await named(house) == {("ahead", "clock.a"), ("ahead", "clock.b")}
    states = {one.ref: one.summary.state for one in await house.client.schedules.all()}
    assert states == {"clock.a": "active", "clock.b": "active", "clock.c": "paused"}
    [trouble] = [one for one in await house.client.schedules.health() if one.schedule == "clock.a"]
    assert "penstock schedule enable clock.a" in trouble.hint
    await house.client.schedules.enable("clock.a")
    assert await named(house) == {("ahead", "clock.b")}
    [first] = await house.fires("clock.a")
    await house.sleep("clock.a", timedelta(minutes=1))
    await house.fire()
    fires = await house.fires("clock.a")
    assert len(fires) == 2
    assert fires[0]["due_at"] < first["due_at"]
