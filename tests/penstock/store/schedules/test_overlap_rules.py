"""The decisions of the overlap policies about due fires, case by case."""

from __future__ import annotations

import pytest

from tests.penstock.store.schedules.conftest import House
from tests.penstock.store.schedules.rows import A, B, Rows, instants

Fire = tuple[str, int, str, str, str]
"""Schedule, instant, kind, status, overlap."""


async def decided(rows: Rows, *fires: Fire) -> list[tuple[str, str | None]]:
    columns = [list(column) for column in zip(*fires, strict=True)]
    found = await rows.sql(
        f"select status, error from decide_overlaps($1::text[], {instants('$2')}, $3::text[], $4::text[], $5::text[], $6::text[])"
        " order by n",
        *(*columns, [None] * len(fires)),
    )
    return [(row["status"], row["error"]) for row in found]


async def statuses(rows: Rows, *fires: Fire) -> list[str]:
    return [status for status, _ in await decided(rows, *fires)]


def due(ref: str, n: int, overlap: str, *, kind: str = "due", status: str = "created") -> Fire:
    return (ref, n, kind, status, overlap)


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
async def test_runs_of_another_schedule_keep_nothing_back(house: House, overlap: str) -> None:
    rows = await Rows.prepare(house)
    await rows.run("running", last_of=B)
    await rows.waits(B, 1)
    await rows.run("completed", last_of=A)
    assert await statuses(rows, due(A, 2, overlap)) == ["created"]
    assert await statuses(rows, due(B, 2, overlap)) == ["skipped" if overlap == "skip" else "queued"]


@pytest.mark.parametrize(
    ("overlap", "becomes"), [("skip", "skipped"), ("queue", "queued"), ("replace", "queued")]
)
async def test_a_waiting_fire_still_goes_first_though_nothing_runs(
    house: House, overlap: str, becomes: str
) -> None:
    rows = await Rows.prepare(house)
    await rows.waits(A, 1)
    assert await statuses(rows, due(A, 2, overlap)) == [becomes]


async def test_an_allowed_or_failed_fire_is_left_as_it_is(house: House) -> None:
    rows = await Rows.prepare(house)
    await rows.run("running", last_of=A)
    fires = (due(A, 1, "allow"), due(A, 2, "queue", status="failed"), due(A, 3, "queue"))
    assert await statuses(rows, *fires) == ["created", "failed", "queued"]


async def test_one_that_was_recorded_before_takes_no_place(house: House) -> None:
    rows = await Rows.prepare(house)
    await rows.fire(A, 1)
    assert await statuses(rows, due(A, 1, "queue"), due(A, 2, "queue")) == ["created", "created"]
    await rows.run("running", last_of=A)
    await rows.fire(B, 3)
    assert await statuses(rows, due(A, 3, "queue")) == ["queued"], "that of another schedule does not count"


@pytest.mark.parametrize(
    ("kind", "before", "again"),
    [
        ("backfill", "skipped", True),
        ("backfill", "failed", True),
        ("backfill", "created", False),
        ("due", "skipped", False),
        ("due", "failed", False),
    ],
)
async def test_only_a_backfill_repeats_a_fire_that_never_ran(
    house: House, kind: str, before: str, again: bool
) -> None:
    rows = await Rows.prepare(house)
    await rows.fire(A, 1, before)
    fires = due(A, 1, "queue", kind=kind), due(A, 2, "queue", kind=kind)
    assert await statuses(rows, *fires) == ["created", "queued" if again else "created"]


@pytest.mark.parametrize(
    ("waiting", "kind", "becomes"),
    [(99, "due", "queued"), (100, "due", "skipped"), (100, "backfill", "queued")],
)
async def test_a_hundred_fires_wait_and_more_only_by_request(
    house: House, waiting: int, kind: str, becomes: str
) -> None:
    rows = await Rows.prepare(house)
    await rows.waits(A, 0)
    await rows.sql(
        "insert into waiting_fire select schedule, due_at + n * interval '1 minute', gen_random_uuid(), replaces, namespace_id,"
        " definition_id, not_before, params from waiting_fire, generate_series(1, $1::int - 1) n",
        waiting,
    )
    [(status, error)] = await decided(rows, due(A, 500, "queue", kind=kind))
    assert status == becomes
    assert error == ("overlap: 100 fires wait already" if becomes == "skipped" else None)
