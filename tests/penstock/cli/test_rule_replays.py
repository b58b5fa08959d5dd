"""The command that replays stored events through a rule."""

from __future__ import annotations

from tests.flows.installation import Installation
from tests.flows.test_rule_replays import book, paid, publish, rule
from tests.penstock.cli.commands import penstock


async def test_command_prints_outcomes_with_masked_parameters(house: Installation) -> None:
    await house.start(paid, book)
    await publish(house, 1, 5, 7)
    await house.apply(paid, book, rule())
    dry = await penstock("rules", "replay", "till.book_large", "--since", "59m", "--dry-run", "--json")
    assert dry.code == 0, dry.err
    *items, summary = dry.documents
    assert [item["params"] for item in items] == [{"amount": n, "card": "***"} for n in (5, 7)]
    assert summary["counts"] == {"no match": 1, "would start": 2}
    assert "4242" not in dry.out
    real = await penstock("rules", "replay", "till.book_large", "--since", "59m")
    assert "3 events: 2 started, 1 no match" in real.out
    assert "4242" not in real.out
    refused = await penstock("rules", "replay", "till.book_large", "--since", "40d")
    assert (refused.code, "kept for 30 days" in refused.err) == (1, True)
