"""The fires that are recorded, and their effect on their schedules."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any
from uuid import UUID

from penstock.language.terms.ids import new_id
from tests.penstock.store.schedules.conftest import House
from tests.penstock.store.schedules.rows import A, B, Rows, instants

Fire = tuple[str, int, str, str]
"""Schedule, instant, kind, status."""


async def record(
    rows: Rows, *fires: Fire, moved: bool = True, problem: str | None = None
) -> tuple[dict[str, Any], list[UUID]]:
    """Call `record_fires`. Returns its answer, and the ids that the fires were given. `moved`: the schedule A moves on."""
    schedules, numbers, kinds, statuses = [list(column) for column in zip(*fires, strict=True)]
    ids = [new_id() for _ in fires]
    [row] = await rows.sql(
        "select created, queued, skipped, failed from record_fires(array[$1], array[case when $2 then now() end], array[now()],"
        f" array[$3], $4::text[], {instants('$5')}, $6::text[], $7::text[], array_fill(1, array[$9::int]), $8::uuid[],"
        " array_fill('because'::text, array[$9::int]))",
        *(A, moved, problem, schedules, numbers, kinds, statuses, ids, len(fires)),
    )
    return dict(row), ids


async def test_only_a_started_backfill_replaces_a_fire_that_never_ran(house: House) -> None:
    rows = await Rows.prepare(house)
    before, kinds, statuses = (
        ("created", "queued", "skipped", "failed"),
        ("due", "backfill"),
        ("created", "queued", "skipped"),
    )
    for n, (was, kind, status) in enumerate(itertools.product(before, kinds, statuses)):
        old = await rows.fire(A, n, was)
        said, [new] = await record(rows, (A, n, kind, status))
        taken = kind == "backfill" and status != "skipped" and was in ("skipped", "failed")
        case = f"{was}, then {kind} {status}"
        assert (await rows.fires())[A, n] == (status if taken else was), case
        [row] = await rows.sql("select execution_id, error, kind from fire order by due_at desc limit 1")
        assert (row["execution_id"], row["error"]) == (new if taken else old, None), case
        expected = {"created": [], "queued": [], "skipped": 0, "failed": 0}
        assert said == (expected | {status: [new]} if taken else expected), case


async def test_each_fire_is_recorded_with_the_values_of_its_status(house: House) -> None:
    rows = await Rows.prepare(house)
    fires = [(A, n, "due", status) for n, status in enumerate(("created", "failed", "skipped", "queued"), 1)]
    said, ids = await record(rows, *fires)
    assert said == {"created": [ids[0]], "queued": [ids[3]], "skipped": 1, "failed": 1}
    found = await rows.sql("select execution_id, error from fire order by due_at")
    assert [row["execution_id"] for row in found] == [ids[0], None, None, ids[3]]
    assert {row["error"] for row in found} == {"because"}
    assert await rows.numbers("open_fire") == {(A, 1)}
    assert await rows.schedule(A) == {"error": None, "last_execution": ids[0], "last": 2}
    assert await rows.schedule(B) == {"error": None, "last_execution": None, "last": None}


async def test_the_last_run_is_that_of_the_latest_instant_and_never_set_back(house: House) -> None:
    rows = await Rows.prepare(house)
    _, [*_, latest] = await record(rows, (A, 3, "due", "created"), (A, 5, "due", "created"))
    assert await rows.schedule(A) == {"error": None, "last_execution": latest, "last": 5}
    await record(rows, (A, 4, "due", "failed"), moved=False)
    assert await rows.schedule(A) == {"error": None, "last_execution": latest, "last": 5}
    await record(rows, (A, 6, "due", "skipped"), moved=False)
    assert (await rows.schedule(A))["last"] == 5


async def test_a_schedule_whose_times_stay_keeps_its_problem_and_one_that_moves_on_has_the_new_one(
    house: House,
) -> None:
    rows = await Rows.prepare(house)
    await rows.sql("update schedule set error = 'before'")
    await record(rows, (A, 1, "due", "skipped"), moved=False, problem="now")
    assert (await rows.schedule(A))["error"] == "before"
    await record(rows, (A, 2, "due", "skipped"), problem="now")
    assert (await rows.schedule(A))["error"] == "now"
    assert (await rows.schedule(B))["error"] == "before"


async def test_a_limited_fire_is_admitted_in_its_own_transaction(
    house: House,
) -> None:
    await Rows.prepare(house)
    for ref in (A, B):
        await house.sleep(ref, timedelta(minutes=1))
    assert (await house.fire(A)).counts == {"created": 1}
    assert (await house.fire(B)).counts == {"created": 1}
    assert await house.statuses() == {"queued": 2}, "no worker lives that could run them"
