"""`penstock check`, `workers` and `migrate`."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.database import Database
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


async def test_workers_are_listed_and_can_be_taken_out_of_service(house: Installation) -> None:
    assert "Nobody lives here" in (await penstock("workers", "list")).out
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


async def test_migrating_says_what_was_done(empty_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", empty_database)
    due = await penstock("migrate", "--check")
    assert due.code == 1
    assert "penstock migrate" in due.out
    assert (await penstock("migrate", "--json")).document["changed"]
    assert "up to date" in (await penstock("migrate")).out
    assert (await penstock("migrate", "--check")).code == 0
    home = Database(Settings(database_url=SecretStr(empty_database)), role="test")
    assert await home.session().fetch("select 1 from legal_move")
    await home.close()
