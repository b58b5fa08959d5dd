"""The command `penstock test` with a list of events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.penstock.cli.commands import penstock

EXAMPLE = Path(__file__).parents[3] / "examples/windows.py"


def event(name: str, at: str, **payload: Any) -> dict[str, Any]:
    return {"trigger": f"orders.{name}", "at": at, "payload": payload}


async def test_list_of_events_is_played(tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    file.write_text(
        json.dumps(
            [
                event("placed", "0s", order=7),
                event("placed", "1m", order=8),
                event("paid", "20m", order=7, amount=1),
            ]
        )
    )
    command = ("test", "orders.remind", "-m", EXAMPLE, "--events", file)
    assert (await penstock(*command, "--json")).documents == [
        {"rule": "orders.remind", "events": [1], "params": {"order": 8}, "error": None},
        {"rule": "orders.remind", "events": [0], "dropped": "answered"},
        {"rule": "orders.remind", "events": [2], "dropped": "expired"},
    ]
    text = (await penstock(*command)).out
    assert "matches events 1 (orders.placed): orders.remind would start orders.remind with" in text
    assert "dropped: event 0 (orders.placed): the event that was expected came in time" in text


async def test_wrong_lists_are_refused_with_a_hint(tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    for text, error in (
        ("{", "does not contain a list of events"),
        ("{}", "does not contain a list of events"),
        ('[{"trigger": "orders.placed"}]', "`at` of event 0"),
        ('[{"trigger": "orders.placed", "at": 1, "payload": {"order": "x"}}]', "payload.order"),
    ):
        file.write_text(text)
        refused = await penstock("test", "orders.remind", "-m", EXAMPLE, "--events", file)
        assert (refused.code, error in refused.err) == (1, True), refused.err
    alone = await penstock("test", "orders.remind", "-m", EXAMPLE, "order=1")
    assert (alone.code, "--events events.json" in alone.err) == (1, True)
    both = await penstock("test", "orders.remind", "-m", EXAMPLE, "order=1", "--events", file)
    assert (both.code, "a payload and --events" in both.err) == (1, True)
