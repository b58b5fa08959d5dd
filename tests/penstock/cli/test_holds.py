"""The commands `penstock hold`, `release` and `holds`."""

from __future__ import annotations

from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


async def test_hold_is_listed_and_released(house: Installation) -> None:
    await house.apply(*shop.ALL)
    held = await penstock(
        "hold", "pack", "shop", "--reason", "the bank is down", "--by", "ada", "--for", "2h"
    )
    assert held.code == 0, held
    assert "penstock release pack shop" in held.out
    id = str(await house.client.start("shop.charge", {"order": 7}))
    [row] = (await penstock("holds", "--json")).documents
    assert (row["kind"], row["name"], row["by"], row["reason"]) == ("pack", "shop", "ada", "the bank is down")
    assert row["since"] < row["until"]
    listed = await penstock("holds")
    assert "the bank is down" in listed.out
    [row] = (await penstock("executions", "--json")).documents
    assert (row["waits_for"]["because"], row["waits_for"]["text"]) == (
        "held",
        "waits for the release of a hold",
    )
    shown = await penstock("show", id)
    assert "waits for the release of a hold" in shown.out
    assert "9000" not in shown.out
    document = (await penstock("show", id, "--json")).document
    assert document["not_before"] is None
    released = await penstock("release", "pack", "shop", "--rate", "10/min", "--json")
    assert released.document == {"kind": "pack", "name": "shop", "rate": "10/min"}
    [row] = (await penstock("holds", "--json")).documents
    assert (row["rate_count"], row["rate_seconds"]) == (10, 60.0)
    assert (await penstock("release", "pack", "shop")).code == 0
    assert (await penstock("holds", "--json")).documents == []
    missing = await penstock("release", "pack", "shop")
    assert (missing.code, "is not held" in missing.err) == (1, True)
    assert (await penstock("hold", "shelf", "shop")).code == 1
    notes = await house.rows("select operation, target from audit where outcome = 'done' order by at")
    assert [note["operation"] for note in notes] == ["penstock hold", "penstock release", "penstock release"]
    [row] = await house.rows("select status from execution where id = $1::text::uuid", id)
    assert row["status"] == "requested"


async def test_hold_of_unknown_name_is_refused(house: Installation) -> None:
    await house.apply(*shop.ALL)
    await house.client.start("shop.charge", {"order": 7})
    for kind, name, meant in (
        ("action", "shop.chrage", "shop.charge"),
        ("pack", "shpo", "shop"),
        ("route", "defualt", "default"),
        ("tenant", "publik", "public"),
    ):
        refused = await penstock("hold", kind, name)
        assert refused.code == 1, refused
        assert f"there is no {kind} '{name}'" in refused.err
        assert f"Did you mean '{meant}'" in refused.err
        assert (await penstock("hold", kind, meant)).code == 0
    assert len(await house.client.holds.all()) == 4
    assert (await penstock("hold", "action", "shop.chrage", "--force")).code == 0
    assert (await penstock("hold", "action", "shop.chrage", "--for", "2h")).code == 0
