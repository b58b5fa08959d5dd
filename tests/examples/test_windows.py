"""The example of windows, tried on lists of events with times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.language.loading.load import load
from penstock.testing import play

RULES = load(str(Path(__file__).parents[2] / "examples/windows.py")).rules


def started(rule: str, *entries: tuple[str, str, dict[str, Any]]) -> list[Any]:
    """Return the parameters of the executions that the rule starts for these events: trigger, time and payload."""
    events = [{"trigger": f"orders.{name}", "at": at, "payload": payload} for name, at, payload in entries]
    return [played.match.params for played in play(RULES[f"orders.{rule}"], events).matches]


def test_order_is_sent_once_it_is_paid() -> None:
    paid = {"order": 7, "amount": 9.5}
    assert started(
        "ship",
        ("paid", "0s", paid),  # before its order
        ("placed", "1s", {"order": 7}),
        ("placed", "2s", {"order": 8}),
        ("paid", "3s", {"order": 7, "amount": 0}),
        ("paid", "23h", paid),
        ("paid", "2d", {"order": 8, "amount": 1}),
    ) == [{"order": 7, "amount": 9.5}]


def test_order_that_is_not_paid_is_remembered() -> None:
    assert started(
        "remind",
        ("placed", "0s", {"order": 7}),
        ("placed", "1m", {"order": 8}),
        ("paid", "59m", {"order": 7, "amount": 1}),
        ("paid", "1h1m", {"order": 8, "amount": 1}),
    ) == [{"order": 8}]


def test_card_is_blocked_after_three_refusals() -> None:
    times = ("0s", "8m", "11m", "12m", "30m")
    entries = [("refused", at, {"order": n, "card": "x"}) for n, at in enumerate(times)]
    assert started("block", *entries) == [{"card": "x", "orders": [1, 2, 3]}]
