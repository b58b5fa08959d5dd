"""`penstock check`, `workers` and `migrate`."""

from __future__ import annotations

from contextlib import nullcontext

import orjson
import pytest
from pydantic import SecretStr

from penstock.operate import activity
from penstock.operate.overview import lately
from penstock.settings import Settings
from penstock.store.session import clock
from penstock.store.session.database import Database
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


async def test_a_sound_system_has_no_violations(house: Installation) -> None:
    await house.start(*shop.ALL)
    await house.client.run("shop.charge", {"order": 1}, timeout=20)
    await house.quiet()
    said = await penstock("check")
    assert (said.code, said.out.count("VIOLATED")) == (0, 0)


async def test_a_violation_is_named_and_ends_with_1(house: Installation) -> None:
    await house.apply(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 1})
    await house.rows("delete from live")
    said = await penstock("check")
    assert said.code == 1
    assert str(id) in said.out
    broken = [d for d in (await penstock("check", "--json")).documents if d["violations"]]
    assert [d["invariant"] for d in broken] == ["I10a"]


async def test_top_shows_ended_waiting_working_and_failed(house: Installation) -> None:
    assert "No process is online" in (await penstock("top")).out
    await house.start(*shop.ALL)
    await house.client.run("shop.charge", {"order": 1}, timeout=20)
    failed = await house.client.start("shop.flaky", {"failures": 9})
    await house.client.start("shop.charge", {"order": 2}, delay=3600)
    await house.until("select 1 from execution where id = $1 and status = 'failed'", failed)
    said = await penstock("top", "--once")
    assert said.code == 0
    assert all(word in said.out for word in ("Timer", "worker", "shop.flaky", str(failed))), said.out
    seen = (await penstock("top", "--json")).document
    assert {one["cause"]: one["count"] for one in seen["standing"]} == {"timer": 1}
    assert [one["id"] for one in seen["failures"]] == [str(failed)]
    assert "worker" in {one["kind"] for one in seen["processes"]}


async def test_one_look_counts_the_whole_last_minute_however_slow_the_database(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.apply(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 1})
    monkeypatch.setattr(activity, "PATIENCE", -1.0)
    now = int((await clock.now(house.session)).timestamp())
    at = (now // activity.SECONDS - activity.LATELY + 2) * activity.SECONDS
    await house.rows(
        "insert into history (execution_id, at, new, attempt) values ($1, to_timestamp($2::float8), 'completed', 1)",
        id,
        float(at),
    )
    seen = await activity.ActivityWatch().look(lambda: nullcontext(house.session), 60.0)
    assert lately(seen).ended == 1


async def test_workers_are_listed_and_can_be_taken_out_of_service(house: Installation) -> None:
    assert "No process is online" in (await penstock("workers", "list")).out
    await house.start(*shop.ALL)
    await house.until("select 1 from process where kind = 'worker'")
    rows = {row["kind"]: row for row in (await penstock("workers", "list", "--json")).documents}
    assert set(rows) == {"executor", "worker"}
    name = rows["worker"]["name"]
    await house.until("select 1 from process where executors <> '{}'")
    said = await penstock("workers", "show", name)
    assert all(word in said.out for word in (name, "shop.charge", "task executor", "async", "average"))
    shown = (await penstock("workers", "show", name, "--json")).document
    assert shown["executors"]["async"]["available"] == shown["concurrency"]
    assert "workers list" in (await penstock("workers", "show", "nobody")).err
    assert name in (await penstock("workers", "cordon", name)).out
    assert "cordoned" in (await penstock("workers", "list")).out
    assert (await penstock("workers", "uncordon", name, "--json")).document == {"in_service": [name]}
    assert (await penstock("workers", "uncordon", name)).code == 1


async def test_a_worker_that_left_with_work_in_its_hands_is_still_listed(house: Installation) -> None:
    await house.rows(
        "insert into process (id, kind, name, beat_at) values (gen_random_uuid(), 'worker', 'gone', '-infinity')"
    )
    assert "gone" in (await penstock("workers", "list")).out
    assert (await penstock("workers", "list", "--json")).document["name"] == "gone"


async def test_dead_workers_are_listed_with_all(house: Installation) -> None:
    await house.rows(
        "insert into process (id, kind, name, beat_at, state) "
        "values (gen_random_uuid(), 'worker', 'lives', clock_timestamp() + interval '10 minutes', 'active'), "
        "(gen_random_uuid(), 'worker', 'buried', clock_timestamp(), 'dead')"
    )
    current = await penstock("workers", "list")
    assert ("lives" in current.out, "buried" in current.out) == (True, False)
    assert "Not listed: 1 dead process. See all with: penstock workers list --all" in current.err
    assert (await penstock("workers", "list", "--json")).document["name"] == "lives"
    every = await penstock("workers", "list", "--all")
    assert ("buried" in every.out, "Not listed" in every.err) == (True, False)
    assert [process.name for process in await house.client.workers.all(fresh=True)] == ["lives"]


async def test_migrating_names_the_changes(empty_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", empty_database)
    due = await penstock("migrate", "--check")
    assert due.code == 1
    assert "penstock migrate" in due.out
    assert (await penstock("migrate", "--json")).document["changed"]
    assert "up to date" in (await penstock("migrate")).out
    assert (await penstock("migrate", "--check")).code == 0
    home = Database(Settings(database_url=SecretStr(empty_database)), role="test")
    assert await home.session().fetch("select 1 from legal_move")
    rows = await home.session().fetch("select by, details from audit where operation = 'penstock migrate'")
    assert len(rows) == 1, "the run that changed something, and no other"
    assert rows[0]["by"].startswith("command:")
    assert orjson.loads(rows[0]["details"])["applied"] > 100
    await home.close()
