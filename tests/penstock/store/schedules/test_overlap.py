"""The overlap of a due fire with the run before it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock import Schedule
from penstock.language.definitions.schedule import Overlap
from penstock.language.moves import CANCELING
from penstock.store.schedules import statements
from tests.flows import shop
from tests.penstock.store.schedules.conftest import House

MINUTE = timedelta(minutes=1)
REF = "clock.minutely"


async def scheduled(house: House, overlap: Overlap) -> None:
    await house.apply(
        *shop.ALL,
        Schedule(REF, action=shop.charge, params={"order": 1}, cron="* * * * *", overlap=overlap),
    )


async def fire_again(house: House) -> list[str]:
    """Let another minute of the past be due and fire it; the statuses of all fires, newest first."""
    await house.rows("update fire set due_at = due_at - interval '1 minute'")
    await house.rows("update waiting_fire set due_at = due_at - interval '1 minute'")
    await house.rows("update open_fire set due_at = due_at - interval '1 minute'")
    await house.sleep(REF, MINUTE)
    await house.fire()
    return [row["status"] for row in reversed(await house.fires(REF))]


async def open_runs(house: House) -> int:
    return len(await house.rows("select from execution where finished_at is null"))


async def start_waiting(house: House) -> None:
    await house.change(statements.cancel_replaced)
    await house.change(lambda tx: statements.start_waiting(tx, 10))


async def test_allow_lets_them_run_side_by_side(house: House) -> None:
    await scheduled(house, "allow")
    await fire_again(house)
    assert await fire_again(house) == ["created", "created"]
    assert await open_runs(house) == 2


async def test_skip_drops_the_fire_and_says_why(house: House) -> None:
    await scheduled(house, "skip")
    await fire_again(house)
    await house.claim()
    assert await fire_again(house) == ["skipped", "created"]
    [*_, last] = await house.fires(REF)
    assert "had not ended" in last["error"]
    await house.end()
    assert await fire_again(house) == ["created", "skipped", "created"]


async def test_queue_runs_one_after_another_first_in_first_out(house: House) -> None:
    await scheduled(house, "queue")
    for _ in range(3):
        await fire_again(house)
        await house.claim()
    assert [row["status"] for row in await house.fires(REF)] == ["created", "queued", "queued"]
    promised = [row["execution_id"] for row in await house.fires(REF)]
    await start_waiting(house)
    assert await open_runs(house) == 1, "the first still runs"
    for done in (1, 2):
        await house.end()
        await start_waiting(house)
        await start_waiting(house)
        assert await open_runs(house) == 1
        assert [row["status"] for row in await house.fires(REF)].count("created") == done + 1
    order = [row["id"] for row in await house.rows("select id from execution order by created_at")]
    assert order == promised
    assert await house.rows("select from waiting_fire") == []


async def test_a_queue_is_bounded(house: House) -> None:
    await scheduled(house, "queue")
    await fire_again(house)
    await house.claim()
    await house.rows(
        "insert into waiting_fire (schedule, due_at, execution_id, replaces, namespace_id, definition_id, params) "
        "select $1, now() - n * interval '1 hour', gen_random_uuid(), false, 1, 1, '{}' from generate_series(1, 100) n",
        REF,
    )
    assert await fire_again(house) == ["skipped", "created"]
    assert "100 fires wait" in (await house.fires(REF))[-1]["error"]


async def test_replace_cancels_the_run_and_starts_when_it_has_ended(house: House) -> None:
    await scheduled(house, "replace")
    await fire_again(house)
    await house.claim()
    assert await fire_again(house) == ["queued", "created"]
    await start_waiting(house)
    assert await house.statuses() == {CANCELING: 1}
    assert await fire_again(house) == ["queued", "skipped", "created"], "only the newest waits"
    assert len(await house.rows("select from waiting_fire")) == 1
    await start_waiting(house)
    assert await open_runs(house) == 1
    await house.end("cancelled")
    await start_waiting(house)
    assert await house.statuses() == {"cancelled": 1, "scheduled": 1}
    assert [row["status"] for row in await house.fires(REF)] == ["created", "skipped", "created"]


async def test_replace_starts_at_once_instead_of_an_unclaimed_run(house: House) -> None:
    await scheduled(house, "replace")
    await fire_again(house)
    await fire_again(house)
    await start_waiting(house)
    assert await house.statuses() == {"cancelled": 1, "scheduled": 1}


async def test_several_replicas_start_a_waiting_fire_once(house: House) -> None:
    await scheduled(house, "queue")
    await fire_again(house)
    await house.claim()
    await fire_again(house)
    await house.end()
    other = (await house.parts()).database.session()
    async with other.transaction() as tx:
        await statements.start_waiting(tx, 10)
        await house.change(lambda mine: statements.start_waiting(mine, 10))
    await start_waiting(house)
    assert await open_runs(house) == 1


async def test_disabling_a_schedule_drops_its_waiting_fire(house: House) -> None:
    await scheduled(house, "queue")
    await fire_again(house)
    await house.claim()
    await fire_again(house)
    await house.client.schedules.disable(REF)
    [*_, last] = await house.fires(REF)
    assert (last["status"], last["execution_id"]) == ("skipped", None)
    await house.end()
    await start_waiting(house)
    assert await open_runs(house) == 0


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
async def test_of_several_fires_at_once_the_policy_holds_too(house: House, overlap: Overlap) -> None:
    await scheduled(house, overlap)
    await house.sleep(REF, 4 * MINUTE)
    await house.fire()
    statuses = [row["status"] for row in await house.fires(REF)]
    assert len(statuses) in (4, 5)
    others = {"skip": "skipped", "queue": "queued", "replace": "skipped"}[overlap]
    first, last = (others, "created") if overlap == "replace" else ("created", others)
    assert (statuses[0], statuses[-1]) == (first, last)
    assert sorted(statuses) == sorted(["created", *[others] * (len(statuses) - 1)])
    assert await open_runs(house) == 1


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
async def test_overlap_counts_each_open_run(house: House, overlap: Overlap) -> None:
    await scheduled(house, "allow")
    for _ in range(3):
        await fire_again(house)
    await scheduled(house, overlap)
    ids = [row["execution_id"] for row in await house.fires(REF)]
    await house.rows("select * from cancel_executions(array[$1::uuid], 'asked')", ids[-1])
    status = "skipped" if overlap == "skip" else "queued"
    assert await fire_again(house) == [status, "created", "created", "created"]
    await house.change(lambda tx: statements.start_waiting(tx, 10))
    assert await open_runs(house) == 2
    if overlap == "replace":
        await start_waiting(house)
        assert await open_runs(house) == 1
        assert [row["status"] for row in await house.fires(REF)][-1] == "created"


@pytest.mark.parametrize("overlap", ["queue", "replace"])
async def test_pause_keeps_fires_waiting(house: House, overlap: Overlap) -> None:
    await scheduled(house, overlap)
    for _ in range(2):
        await fire_again(house)
    await house.client.schedules.pause(REF, 3600)
    await start_waiting(house)
    assert await open_runs(house) == 1, "the run is not replaced while the schedule is paused"
    await house.end()
    await start_waiting(house)
    assert await open_runs(house) == 0
    await house.client.schedules.enable(REF)
    await start_waiting(house)
    assert await open_runs(house) == 1
    assert [row["status"] for row in await house.fires(REF)] == ["created", "created"]


async def test_run_by_hand_waits_for_no_pause(house: House) -> None:
    await scheduled(house, "queue")
    await fire_again(house)
    await house.client.schedules.pause(REF, 3600)
    await house.client.schedules.run(REF)
    assert [row["status"] for row in await house.fires(REF)] == ["created", "queued"]
    await house.end()
    await start_waiting(house)
    assert [row["status"] for row in await house.fires(REF)] == ["created", "created"]
