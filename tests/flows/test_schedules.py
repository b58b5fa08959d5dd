"""Schedules at work, on both transports: from a due instant to the outcome of its run."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from penstock import MissedFires, RetryPolicy, Schedule
from penstock.operate.check import check
from penstock.service.assembly import Parts
from penstock_executor import schedule_metrics
from penstock_executor.loops import fire_schedules, measure_schedules
from tests.crash.processes import ROOT, Fleet, Started
from tests.flows import shop
from tests.flows.installation import Installation, started_by

ALL = MissedFires(catch_up="all", at_most=10_000)


class WrongClocks(Fleet):
    """A starter of processes with clocks that are ahead by so many seconds."""

    def start(self, role: str, *arguments: str) -> Started:
        command = [sys.executable, str(ROOT / "tests/flows/wrong_clock.py"), role, *arguments]
        self.alive.append(subprocess.Popen(command, env=self.environment))
        return self.alive[-1]


def each_second(n: int = 0, **options: Any) -> Schedule:
    options = {"action": shop.charge, "params": {"order": n}, "every": 1, "missed": ALL, **options}
    return Schedule(f"clock.s{n}", **options)


async def no_instant_is_left_out_or_done_twice(house: Installation) -> None:
    """Assert that of every schedule each second from its first fire to its last has one fire with one execution of its own."""
    rows = await house.rows(
        "select schedule, count(*) as fires, count(distinct execution_id) as executions, "
        "extract(epoch from max(due_at) - min(due_at)) + 1 as seconds from fire group by schedule"
    )
    assert all(row["fires"] == row["executions"] == row["seconds"] for row in rows), rows
    [[surplus]] = await house.rows(
        "select count(*) from payload p where origin ? 'schedule' "
        "and not exists (select from fire f where f.execution_id = p.execution_id)"
    )
    assert surplus == 0
    early = await house.rows("select from fire where due_at > made_at")
    assert early == []


async def test_a_schedule_fires_and_the_outcome_of_its_run_is_kept(house: Installation) -> None:
    await house.start(*shop.ALL, each_second())
    await house.until("select from fire where outcome = 'completed'")
    [fire, *_] = reversed(await house.client.schedules.history("clock.s0"))
    assert (fire.kind, fire.status, fire.error) == ("due", "created", None)
    assert (fire.made_by or "").startswith("executor:")
    starts = [move.at for move in await house.client.history(started_by(fire)) if move.new == "running"]
    assert [fire.started_at] == starts
    assert await house.client.result(started_by(fire), timeout=20) == {"order": 0, "charged": 0}
    stats = await house.client.schedules.stats("clock.s0")
    assert stats.fires >= stats.completed >= 1
    assert await house.client.schedules.health() == []
    await house.client.schedules.delete("clock.s0")
    await house.quiet()
    await no_instant_is_left_out_or_done_twice(house)
    await house.sound()


async def test_a_schedule_that_is_made_while_executors_sleep_wakes_them(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fire_schedules, "RECHECK", 3600.0)
    await house.start(*shop.ALL, each_second(0))
    await house.until("select from fire")
    await house.client.schedules.disable("clock.s0")
    await asyncio.sleep(1.5)  # until the loop has seen that nothing is due any more
    [change] = await house.client.schedules.put(each_second(1))
    assert change.what == "new"
    await house.until("select from fire where schedule = 'clock.s1'")
    await house.client.schedules.enable("clock.s0")
    [[count]] = await house.rows("select count(*) from fire where schedule = 'clock.s0'")
    await house.client.schedules.delete("clock.s1")
    await house.until("select from fire where schedule = 'clock.s0' having count(*) > $1", count)


async def test_an_unannounced_schedule_is_noticed_at_the_next_look(house: Installation) -> None:
    await house.start(*shop.ALL)
    await house.until("select from process where kind = 'executor'")
    await house.apply(each_second())
    await house.until("select from fire")


async def test_a_run_goes_by_the_retry_policy_of_its_schedule(house: Installation) -> None:
    policy = RetryPolicy(max_attempts=5, initial_delay=0.01)
    stubborn = Schedule("clock.stubborn", action=shop.flaky, params={"failures": 4}, every="1d", retry=policy)
    await house.start(*shop.ALL, stubborn)
    fire = await house.client.schedules.run("clock.stubborn")
    assert await house.client.result(started_by(fire), timeout=20) == 5


async def test_a_workflow_or_an_action_is_told_when_it_was_due(house: Installation) -> None:
    schedule = Schedule(
        "clock.told",
        action=shop.count,
        params={"words": "{{ scheduled_time }} {{ shop }}"},
        context={"shop": "a b"},
        every="1d",
    )
    await house.start(*shop.ALL, schedule)
    fire = await house.client.schedules.run("clock.told")
    assert await house.client.result(started_by(fire), timeout=20) == 3
    row = await house.client.get(started_by(fire))
    assert fire.due_at.isoformat() in orjson.loads(row.params or "null")["words"]


async def test_a_second_execution_of_a_fire_and_a_fire_without_any_are_found(house: Installation) -> None:
    await house.apply(*shop.ALL, each_second(0, every="1d"), each_second(1, every="1d"))
    for name in ("clock.s0", "clock.s1"):
        await house.client.schedules.run(name)
    await house.sound()
    await house.rows("update fire set execution_id = gen_random_uuid() where schedule = 'clock.s0'")
    await house.rows("delete from open_fire where schedule = 'clock.s1'")
    [finding_row] = [finding for finding in await check(house.session) if finding.name == "I7b"]
    assert len(finding_row.violations) == 3


async def test_queued_fires_run_one_after_another(house: Installation) -> None:
    await house.start(
        *shop.ALL,
        Schedule("clock.queue", action=shop.wait_for, params={"seconds": 0.2}, every="1d", overlap="queue"),
    )
    fires = [await house.client.schedules.run("clock.queue") for _ in range(3)]
    assert [fire.status for fire in fires] == ["created", "queued", "queued"]
    for fire in fires:
        await house.until("select from execution where id = $1", started_by(fire))
        assert await house.client.result(started_by(fire), timeout=20) == "waited"
    rows = await house.rows(
        "select (select min(at) from history where execution_id = e.id and new = 'running') as began, e.finished_at as ended "
        "from execution e order by created_at"
    )
    assert all(earlier["ended"] <= later["began"] for earlier, later in pairwise(rows))
    await house.sound()


async def test_a_fire_that_replaces_cancels_the_run_before_it(house: Installation) -> None:
    await house.start(
        *shop.ALL,
        Schedule("clock.newest", action=shop.wait_for, params={"seconds": 60}, every="1d", overlap="replace"),
    )
    first = await house.client.schedules.run("clock.newest")
    await house.until("select from execution where id = $1 and status = 'running'", started_by(first))
    second = await house.client.schedules.run("clock.newest")
    assert second.status == "queued"
    await house.until("select from execution where id = $1 and status = 'running'", started_by(second))
    row = await house.client.get(started_by(first))
    assert (row.status, row.reason) == ("cancelled", "replaced by a newer fire of its schedule")
    await house.client.cancel(started_by(second))
    await house.quiet()
    await house.sound()


async def test_three_executors_fire_every_instant_of_every_schedule_once(house: Installation) -> None:
    await house.apply(*shop.ALL, *(each_second(n) for n in range(40)))
    await house.worker(*shop.ALL)
    for _ in range(3):
        await house.executor()
    await house.until("select from fire group by schedule having count(*) >= 5 limit 1")
    await house.rows("update schedule set next_due = null")
    await house.quiet()
    await no_instant_is_left_out_or_done_twice(house)
    assert len(await house.rows("select distinct schedule from fire")) == 40
    await house.sound()


async def test_executors_killed_while_they_fire_lose_nothing_and_repeat_nothing(
    house: Installation, database: str, broker: str | None, tmp_path: Path
) -> None:
    await house.apply(*shop.ALL, *(each_second(n) for n in range(50)))
    draw = random.Random(3)
    with Fleet(database, broker, tmp_path / "log") as fleet:
        for _ in range(3):
            fleet.executor()
        await house.until("select from fire having count(*) > 150")
        for _ in range(4):
            await asyncio.sleep(draw.uniform(0.2, 1.0))
            fleet.kill(draw.choice(fleet.alive))
            fleet.executor()
        [[count]] = await house.rows("select count(*) from fire")
        await house.until("select from fire having count(*) > $1 + 100", count)
        await house.rows("update schedule set next_due = null")
    assert fleet.killed == 4
    await house.executor()
    await house.worker(*shop.ALL)
    await house.quiet()
    await no_instant_is_left_out_or_done_twice(house)
    assert len(await house.rows("select distinct schedule from fire")) == 50
    await house.sound()


async def test_the_clock_of_a_replica_means_nothing(
    house: Installation, database: str, broker: str | None, tmp_path: Path
) -> None:
    soon = Schedule("clock.soon", action=shop.charge, params={"order": 1}, cron="0 0 1 1 *")
    await house.apply(*shop.ALL, soon, *(each_second(n) for n in range(5)))
    await house.rows(
        "update schedule set next_due = clock_timestamp() + interval '30 minutes' where ref = 'clock.soon'"
    )
    with WrongClocks(database, broker, tmp_path / "log") as fleet:
        fleet.start("3600", "executor")
        fleet.start("-3600", "executor")
        await house.until("select from fire group by schedule having count(*) >= 4 limit 1", seconds=90)
        await house.until("select from fire having count(distinct made_by) = 2", seconds=90)
    await no_instant_is_left_out_or_done_twice(house)
    assert await house.rows("select from fire where schedule = 'clock.soon'") == []
    assert {row[0] for row in await house.rows("select distinct kind from fire")} == {"due"}


@pytest.mark.parametrize("transport", ["postgres"], indirect=True)
async def test_gauges_of_a_replica_show_its_work_and_all_schedules(house: Installation) -> None:
    await house.apply(
        *shop.ALL, each_second(0), each_second(1), each_second(2, params={"order": "{{ timezone }}"})
    )
    parts: Parts = await house.parts()
    read = {**schedule_metrics.gauges(parts), **schedule_metrics.counters(parts)}
    session = parts.database.session()
    await house.rows("update schedule set since = since - interval '1 second', next_due = clock_timestamp()")
    assert await fire_schedules.turn(parts, session) is True
    await measure_schedules.turn(parts, session)
    now = {name: value() for name, value in read.items()}
    assert now["schedules_total"] == now["schedules_active"] == 3
    assert now["schedule_fires_created"] >= 2
    assert now["schedule_fires_failed"] >= 1
    assert now["schedules_erroring"] == 1
    assert now["schedule_fires_per_minute"] > 0
    assert 0 < now["schedule_failure_rate"] <= 1
    assert now["schedules_late"] == now["schedules_orphaned"] == now["schedule_recoveries"] == 0


@pytest.mark.parametrize("transport", ["postgres"], indirect=True)
async def test_a_schedule_that_the_database_refuses_is_put_aside_and_the_others_fire(
    house: Installation,
) -> None:
    await house.apply(*shop.ALL, each_second(0), each_second(1), each_second(2))
    await house.rows(
        "create function refuse() returns trigger language plpgsql as $$ begin "
        "if new.schedule = 'clock.s1' then raise exception 'not this one' using errcode = '23514'; end if; return new; end $$"
    )
    await house.rows(
        "create trigger refuse before insert on open_fire for each row execute function refuse()"
    )
    parts: Parts = await house.parts()
    await house.rows("update schedule set since = since - interval '1 second', next_due = clock_timestamp()")
    assert await fire_schedules.turn(parts, parts.database.session()) is True
    rows = await house.rows(
        "select ref, error, next_due - clock_timestamp() as wait from schedule order by ref"
    )
    assert [bool(row["error"]) for row in rows] == [False, True, False]
    assert "not this one" in rows[1]["error"]
    assert rows[1]["wait"] > timedelta(minutes=4)
    assert {row[0] for row in await house.rows("select distinct schedule from fire")} == {
        "clock.s0",
        "clock.s2",
    }
    [broken] = [trouble for trouble in await house.client.schedules.health() if trouble.kind == "broken"]
    assert broken.schedule == "clock.s1"


@pytest.mark.parametrize("transport", ["postgres"], indirect=True)
async def test_the_loop_sleeps_until_the_next_schedule_is_due_and_never_spins(house: Installation) -> None:
    parts: Parts = await house.parts()
    session = parts.database.session()
    assert await fire_schedules.turn(parts, session) > 1, "nothing at all"
    far = "2100-01-01T00:00:00+00:00"
    daily = Schedule("clock.daily", action=shop.charge, params={"order": 1}, cron="@daily")
    past = Schedule("clock.over", action=shop.charge, params={"order": 1}, at=far)
    late = Schedule("clock.late", action=shop.charge, params={"order": 1}, every=5, starts_at=far)
    await house.apply(*shop.ALL, daily, past, late)
    await house.rows(
        "update schedule set next_due = case ref when 'clock.daily' then clock_timestamp() + interval '1 hour' end"
        " where ref in ('clock.daily', 'clock.over')"
    )
    wait = await fire_schedules.turn(parts, session)
    assert fire_schedules.RECHECK * 0.8 <= wait <= fire_schedules.RECHECK * 1.2
    await house.rows(
        "update schedule set next_due = clock_timestamp() + interval '2 s' where ref = 'clock.daily'"
    )
    assert 0.5 < await fire_schedules.turn(parts, session) < 2.1
    # What is due, but locked by another transaction, is tried again after a pause.
    await house.rows("update schedule set next_due = clock_timestamp() where ref = 'clock.daily'")
    async with (await house.parts()).database.session().transaction() as tx:
        await tx.fetch("select from schedule for update")
        assert await fire_schedules.turn(parts, session) == fire_schedules.HELD
