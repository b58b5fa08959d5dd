"""The answers of `penstock why` for an event that waits in a window or a burst."""

from __future__ import annotations

from penstock import Rule, Window
from penstock.language.terms.ids import new_id
from tests.flows.installation import Installation
from tests.flows.test_rule_replays import OPTIONS, book, paid, publish, rule
from tests.penstock.cli.commands import penstock

count = Rule(
    "till.alarm",
    action=book,
    params=OPTIONS["params"],
    window=Window(count=[paid], at_least=3, within="1h"),
)


async def test_why_names_the_window_and_burst_of_an_event(house: Installation) -> None:
    await house.start(paid, book, count, rule(debounce="1h"))
    first, _ = await publish(house, 5, 6)
    explained = await penstock("why", first)
    assert explained.code == 0, explained.err
    window, burst = explained.out.splitlines()
    assert window.startswith("till.alarm: the rule waits for 1 more event of till.paid until ")
    assert burst.startswith(
        "till.book_large: the rule has collected 2 events in a burst. The burst closes at "
    )
    document = (await penstock("why", first, "--json")).document
    assert [verdict["rule"] for verdict in document["rules"]] == ["till.alarm", "till.book_large"]


async def test_why_names_the_execution_of_an_event(house: Installation) -> None:
    await house.start(paid, book, rule())
    [event] = await publish(house, 5)
    [execution] = await house.rows("select id from execution")
    lines = (await penstock("why", event)).out.splitlines()
    assert lines == ["till.book_large: the condition is true", f"  execution {execution['id']}"]


async def test_why_refuses_an_unknown_id(house: Installation) -> None:
    refused = await penstock("why", new_id())
    assert (refused.code, "no execution" in refused.err) == (1, True)
