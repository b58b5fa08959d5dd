"""The commands `penstock breaker list`, `open` and `close`."""

from __future__ import annotations

from penstock import action
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


@action(pack="bank", breaker={"failures": 2, "of": 4, "probe": "1h"})
async def pay(n: int = 0) -> None: ...


@action(pack="bank", breaker={"failures": 2, "by": "host"})
async def fetch(host: str) -> None: ...


async def test_breaker_is_opened_listed_and_closed(house: Installation) -> None:
    assert "No breakers" in (await penstock("breaker", "list")).out
    await house.apply(pay, fetch)
    [row] = (await penstock("breaker", "list", "--json")).documents
    assert (row["ref"], row["state"], row["failures"], row["of"]) == ("bank.pay.breaker", "closed", 2, 4)
    closed = await penstock("breaker", "close", "bank.pay")
    assert (closed.code, "the breaker of bank.pay is closed" in closed.err) == (1, True)
    opened = await penstock("breaker", "open", "bank.pay", "--reason", "the bank moves", "--by", "ada")
    assert (opened.code, "penstock breaker close bank.pay" in opened.out) == (0, True), opened
    assert (
        await penstock("breaker", "open", "bank.fetch", "host=a.example", "--for", "2h", "--json")
    ).code == 0
    rows = {row["ref"]: row for row in (await penstock("breaker", "list", "--json")).documents}
    by_hand, of_host = rows["bank.pay.breaker"], rows["bank.fetch.breaker"]
    assert (by_hand["state"], by_hand["by_whom"], by_hand["reason"]) == ("open", "ada", "the bank moves")
    assert by_hand["probe_in"] is None
    assert (of_host["state"], of_host["group_value"]) == ("open", '["a.example"]')
    assert 7100 < of_host["probe_in"] <= 7200
    assert "the bank moves" in (await penstock("breaker", "list")).out
    assert "releasing" in (await penstock("breaker", "close", "bank.pay")).out
    [row] = await house.rows(
        "select releasing_since is not null as releasing, allowed from breaker where by = 'ada'"
    )
    assert (row["releasing"], row["allowed"]) == (True, 2)
    at_once = await penstock("breaker", "close", "bank.fetch", "host=a.example", "--at-once", "--json")
    assert at_once.document == {"ref": "bank.fetch", "at_once": True}
    assert (await penstock("breaker", "close", "bank.pay", "--at-once")).code == 0
    assert await house.rows("select from breaker") == []
    notes = await house.rows("select operation from audit where outcome = 'done' order by at")
    assert [note["operation"] for note in notes] == ["penstock breaker open"] * 2 + [
        "penstock breaker close"
    ] * 3


async def test_breaker_that_does_not_exist_is_refused(house: Installation) -> None:
    await house.apply(fetch)
    missing = await penstock("breaker", "open", "bank.missing")
    assert (missing.code, "has no breaker" in missing.err) == (1, True)
    nameless = await penstock("breaker", "open", "bank.fetch")
    assert (nameless.code, "is grouped by host" in nameless.err) == (1, True)
    assert await house.rows("select from breaker") == []
