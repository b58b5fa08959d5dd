"""`penstock publish`, and `show` and `rules test` of an event."""

from __future__ import annotations

import re

from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


async def test_an_event_is_shown_with_the_rules_that_matched_and_those_that_did_not(
    house: Installation,
) -> None:
    await house.start(*shop.ALL)
    event = (await penstock("publish", "shop.order_placed", "id=7", "amount=250", "--json")).document["id"]
    await house.until("select 1 from enforcement where status = 'executed'")
    said = await penstock("show", event)
    for words in ("the condition is true", "the condition `payload.id == 13` is false", '"amount": 250'):
        assert words in said.out
    verdicts = {v["rule"]: v for v in (await penstock("show", event, "--json")).document["rules"]}
    assert verdicts["shop.big_orders"]["verdict"] == "matched"
    assert verdicts["shop.big_orders"]["execution"]
    assert verdicts["shop.broken"]["verdict"] == "no match"


async def test_rules_are_tried_without_starting_anything(house: Installation) -> None:
    await house.apply(*shop.ALL)
    event = (await penstock("publish", "shop.order_placed", "id=13", "amount=1", "--json")).document["id"]
    verdicts = {v["rule"]: v for v in (await penstock("rules", "test", event, "--json")).documents}
    assert verdicts["shop.broken"]["verdict"] == "failed"
    assert "nothing" in verdicts["shop.broken"]["why"]
    assert "failed" in (await penstock("rules", "test", event)).out
    assert not await house.rows("select 1 from enforcement")


async def test_list_names_the_rules_that_failed(house: Installation) -> None:
    await house.start(*shop.ALL)
    event = (await penstock("publish", "shop.order_placed", "id=13", "amount=1", "--json")).document["id"]
    await house.until("select 1 from enforcement where status = 'failed'")
    printed = (await penstock("events")).out
    assert "1 rule failed" in printed
    assert "matched" not in printed
    [listed] = [row for row in (await penstock("events", "--json")).documents if row["id"] == event]
    assert (listed["matched"], listed["failed"]) == (1, 1)


async def test_the_same_key_gives_the_same_event(house: Installation) -> None:
    await house.apply(*shop.ALL)
    publish = ("publish", "shop.order_placed", "id=7", "--key", "order-7", "--json")
    assert (await penstock(*publish)).document == (await penstock(*publish)).document


async def test_key_of_an_event_is_shown(house: Installation) -> None:
    await house.apply(*shop.ALL)
    keys = ("order-7", "order-8", None)
    events = [await house.client.publish("shop.order_placed", {"id": 7}, key=key) for key in keys]
    shown = [(await penstock("show", event, "--json")).document["key"] for event in events]
    assert shown == list(keys)
    assert re.search(r"^key +order-7 *$", (await penstock("show", events[0])).out, re.MULTILINE)


async def test_an_event_that_does_not_fit_is_refused(house: Installation) -> None:
    await house.apply(*shop.ALL)
    unknown = await penstock("publish", "shop.nothing", "id=7")
    assert unknown.code == 1
    assert "penstock triggers" in unknown.err
    unfit = await penstock("publish", "shop.order_placed", "id=seven")
    assert unfit.code == 1
    assert "payload.id" in unfit.err
