"""`penstock run`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock import Schedule
from penstock.cli import run
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


async def test_it_starts_waits_and_prints_the_result(house: Installation) -> None:
    await house.start(*shop.ALL)
    said = await penstock("run", "shop.charge", "order=7", "amount=2.5", "--wait")
    assert (said.code, json.loads(said.out)) == (0, {"order": 7, "charged": 2.5})
    said = await penstock("run", "shop.count", "words=one two", "--wait", "--json")
    assert said.document["result"] == 2


async def test_without_waiting_it_says_how_to_see_more(house: Installation) -> None:
    await house.apply(*shop.ALL)
    said = await penstock("run", "shop.charge", "order=7")
    assert "penstock show" in said.out
    assert (await penstock("executions", "--json")).document["status"] == "scheduled"


async def test_the_same_key_is_the_same_execution(house: Installation) -> None:
    await house.apply(*shop.ALL)
    ids = {
        (await penstock("run", "shop.charge", "order=7", "--key", "k", "--json")).document["id"]
        for _ in range(2)
    }
    assert len(ids) == 1
    other = await penstock("run", "shop.charge", "order=8", "--key", "k")
    assert other.code == 1
    assert "Use a new key" in other.err


async def test_starts_of_a_burst_are_one_execution(house: Installation) -> None:
    await house.apply(*shop.ALL)
    options = ("--debounce", "1h", "--debounce-key", "order-7", "--at-most", "2h", "--json")
    ids = {
        (await penstock("run", "shop.charge", "order=7", f"amount={n}", *options)).document["id"]
        for n in (1, 2)
    }
    assert len(ids) == 1
    answer = await penstock("why", ids.pop())
    assert "So far, 2 requests share this execution." in answer.out
    refused = await penstock("run", "shop.charge", "order=7", *options, "--keep", "first")
    assert (refused.code, "Give other starts another debounce_key" in " ".join(refused.err.split())) == (
        1,
        True,
    )


async def test_wrong_parameters_are_told_the_right_ones(house: Installation) -> None:
    await house.apply(*shop.ALL)
    said = await penstock("run", "shop.charge", "order=seven")
    assert said.code == 1
    assert "expected integer" in said.err
    assert "It takes: order=integer, amount=number (optional)." in said.err


async def test_an_unknown_action_says_where_to_look(house: Installation) -> None:
    said = await penstock("run", "shop.nothing")
    assert said.code == 1
    assert "penstock apply" in said.err


async def test_a_failure_is_told_with_its_error(house: Installation) -> None:
    await house.start(*shop.ALL)
    said = await penstock("run", "shop.hopeless", "--wait")
    assert said.code == 1
    assert "there is no such customer" in said.err
    assert "Traceback" not in said.err


async def test_waiting_ends_when_it_is_told_to(house: Installation) -> None:
    await house.apply(*shop.ALL)
    said = await penstock("run", "shop.charge", "order=7", "--wait", "--timeout", "0.2")
    assert said.code == 1
    assert "s, and continues" in said.err


async def test_a_vain_wait_reports_that_no_service_is_running(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "PATIENCE", 0.1)
    await house.apply(*shop.ALL)
    wait = ("run", "shop.charge", "order=7", "--wait", "--timeout", "0.5")
    assert "no executor is running" in (await penstock(*wait)).err
    await house.executor()
    await house.until("select 1 from process")
    assert "no worker that has shop.charge is running" in (await penstock(*wait)).err


async def test_parameters_may_come_from_a_file(house: Installation, tmp_path: Path) -> None:
    await house.start(*shop.ALL)
    file = tmp_path / "order.json"
    file.write_text('{"order": 1, "amount": 3}')
    said = await penstock("run", "shop.charge", f"@{file}", "amount=4", "--wait", "--json")
    assert said.document["result"] == {"order": 1, "charged": 4}


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("order", "not name=value"),
        ("=7", "not name=value"),
        ("@/there/is/no/such.json", "Name a readable file"),
    ],
)
async def test_words_that_are_no_parameters_are_explained(named: str, word: str, says: str) -> None:
    said = await penstock("run", "shop.charge", word)
    assert said.code == 1
    assert says in said.err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("run", "shop.chrage", "order=7"), "shop.charge"),
        (("publish", "shop.order_place", "id=7"), "shop.order_placed"),
        (("rules", "disable", "shop.big_order"), "shop.big_orders"),
        (("schedule", "run", "shop.nigthly"), "shop.nightly"),
    ],
)
async def test_a_name_that_is_typed_wrong_is_answered_with_the_one_that_was_meant(
    house: Installation, words: tuple[str, ...], meant: str
) -> None:
    await house.apply(
        *shop.ALL, Schedule("shop.nightly", action=shop.count, cron="@daily", params={"words": ""})
    )
    said = await penstock(*words)
    assert said.code == 1
    assert f"Did you mean '{meant}'?" in said.err
