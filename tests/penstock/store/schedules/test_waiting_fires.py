"""Fires that wait for the run before them: of which schedule they are, which of them start, and which go."""

from __future__ import annotations

from uuid import UUID

from penstock.store.schedules import statements
from tests.penstock.store.schedules.conftest import House
from tests.penstock.store.schedules.rows import BASE, A, B, Rows, instants

C = "clock.c"


async def test_of_a_schedule_that_is_no_more_only_its_own_wait_no_longer(house: House) -> None:
    rows = await Rows.prepare(house)
    for ref in (A, B):
        await rows.waits(ref, 1)
    await rows.fire(A, 2, "queued")
    await rows.waits(A, 3, status="created")
    await rows.sql("select drop_waiting_fires($1, 'deleted')", A)
    assert await rows.fires() == {(A, 1): "skipped", (B, 1): "queued", (A, 2): "queued", (A, 3): "created"}
    assert await rows.numbers("waiting_fire") == {(B, 1)}
    [row] = await rows.sql("select execution_id, error from fire where status = 'skipped'")
    assert (row["execution_id"], row["error"]) == (None, "deleted")


async def test_the_newest_of_a_schedule_goes_on_waiting_whatever_waits_of_others(house: House) -> None:
    rows = await Rows.prepare(house)
    for ref, n in ((A, 1), (A, 3), (B, 2), (B, 4)):
        await rows.waits(ref, n)
    await rows.fire(B, 1, "queued")
    await rows.waits(A, 2, status="created")
    await rows.sql("select replace_waiting_fires(array[$1])", A)
    assert await rows.numbers("waiting_fire") == {(A, 3), (B, 2), (B, 4)}
    fires = {
        (A, 1): "skipped",
        (A, 2): "created",
        (A, 3): "queued",
        (B, 1): "queued",
        (B, 2): "queued",
        (B, 4): "queued",
    }
    assert await rows.fires() == fires
    await rows.sql("select replace_waiting_fires(array[$1, $2])", A, "clock.nothing")
    assert await rows.fires() == fires


async def test_only_a_queued_fire_waits_and_only_then_replaces(house: House) -> None:
    rows = await Rows.prepare(house)
    for n in (1, 2):
        await rows.waits(B, n)
    one, other = [
        row["id"] for row in await rows.sql("select gen_random_uuid() as id from generate_series(1, 2)")
    ]
    [row] = await rows.sql("select namespace_id, definition_id from schedule where ref = $1", A)
    await rows.sql(
        f"select queue_fires(array[$1::uuid], $2::text[], {instants('array[5, 6]')}, array['replace', 'replace'], $3::uuid[],"
        " $4::int[], $5::int[], array[null, null]::timestamptz[], array['{}', '{}'], array[null, null]::text[],"
        " array[null, null]::text[])",
        *(one, [A, B], [one, other], [row["namespace_id"]] * 2, [row["definition_id"]] * 2),
    )
    assert await rows.numbers("waiting_fire") == {(A, 5), (B, 1), (B, 2)}


async def started(rows: Rows, limit: int = 10) -> tuple[int, set[UUID]]:
    [row] = await rows.sql("select started from start_waiting_fires($1)", limit)
    found = await rows.sql("select id from execution where finished_at is null and status <> 'running'")
    return row["started"], {run["id"] for run in found}


async def test_the_first_of_each_schedule_starts_whose_last_run_has_ended(house: House) -> None:
    rows = await Rows.prepare(house)
    await rows.run("completed", last_of=A)
    running = await rows.run("running", last_of=B)
    first = await rows.waits(A, 2)
    await rows.waits(A, 3)
    await rows.waits(B, 2)
    await rows.fire(B, 3, "queued")
    assert await started(rows) == (1, {first})
    assert await rows.numbers("waiting_fire") == {(A, 3), (B, 2)}
    assert await rows.fires() == {(A, 2): "created", (A, 3): "queued", (B, 2): "queued", (B, 3): "queued"}
    assert await rows.numbers("open_fire") == {(A, 2)}
    assert await rows.schedule(A) == {"error": None, "last_execution": first, "last": 2}
    assert await rows.schedule(B) == {"error": None, "last_execution": running, "last": None}
    assert await house.statuses() == {"completed": 1, "running": 1, "queued": 1}
    assert await started(rows) == (0, {first})


async def test_of_many_schedules_so_many_are_looked_at_in_order(house: House) -> None:
    rows = await Rows.prepare(house, A, B, C)
    for ref in (C, B, A):
        await rows.waits(ref, 1)
    assert (await started(rows, 2))[0] == 2
    assert await rows.numbers("waiting_fire") == {(C, 1)}


async def test_one_that_starts_later_than_a_newer_one_does_not_set_its_schedule_back(house: House) -> None:
    rows = await Rows.prepare(house)
    await rows.sql(f"update schedule set last_due = {BASE.format(9)}")
    first = await rows.waits(A, 2)
    assert await started(rows) == (1, {first})
    assert (await rows.schedule(A))["last"] == 9


async def test_future_jitter_is_kept_and_past_jitter_is_dropped(house: House) -> None:
    rows = await Rows.prepare(house)
    await rows.waits(A, 1, later=600)
    await rows.waits(B, 1, later=-600)
    assert (await started(rows))[0] == 2
    found = await rows.sql(
        "select status, not_before > clock_timestamp() as later from execution order by status"
    )
    assert [tuple(row) for row in found] == [("queued", None), ("requested", True)]


async def test_a_run_that_is_to_make_way_is_cancelled_once(house: House) -> None:
    rows = await Rows.prepare(house)
    await rows.waits(A, 1, replaces=True)
    await rows.waits(B, 1)
    running = await rows.run("running", last_of=A)
    await rows.run("running", last_of=B)
    [row] = await rows.sql("select canceling from cancel_replaced()")
    assert row["canceling"] == [running]
    await house.change(statements.cancel_replaced)
    [row] = await rows.sql("select canceling from cancel_replaced()")
    assert row["canceling"] == []


async def test_a_fire_of_an_ending_or_ended_run_is_not_waited_for(house: House) -> None:
    rows = await Rows.prepare(house)
    for ref, status in ((A, "completed"), (B, "canceling")):
        await rows.waits(ref, 1, replaces=True)
        await rows.run(status, last_of=ref)
    other = (await house.parts()).database.session()
    async with other.transaction() as tx, house.session.transaction() as mine:
        await tx.fetch("select from execution for update")
        await mine.fetch("select set_config('lock_timeout', '5s', true)")
        [row] = await mine.fetch("select canceling from cancel_replaced()")
    assert row["canceling"] == []
