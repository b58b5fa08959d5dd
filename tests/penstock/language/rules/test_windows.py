"""Windows in trials: the plain model agrees with `play` on random lists, and windows that cannot match are refused."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from penstock import Rule, Window
from penstock.errors import DefinitionError, InvalidInput
from penstock.language.rules.trial import MAX_PLAYED, play, try_rule
from penstock.language.terms import windows as terms
from tests.penstock.store.events.test_windows_model import FULL, random_events, random_window
from tests.penstock.store.events.window_oracle import model

LISTS = int(os.environ.get("PENSTOCK_EXAMPLES", "40"))


def rule(**window: Any) -> Rule:
    params = {"numbers": "{{ events | map(attribute='payload.n') | list }}"}
    return Rule("shop.watch", action="mail.send", params=params, window=Window(**window))


@pytest.mark.parametrize("seed", range(LISTS))
def test_trial_agrees_with_the_model(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms, "MAX_EVENTS", FULL)
    dice = random.Random(seed)
    window = random_window(dice)
    events = [{**event, "id": n} for n, event in enumerate(random_events(dice, window))]
    played = play(
        rule(**window),
        [
            {"trigger": event["trigger"], "tenant": event["tenant"], "payload": event["payload"]}
            | {"at": terms.instant_of(event["stored"]).isoformat()}
            for event in events
        ],
    )
    matches, reasons = model(window, events, FULL)
    assert sorted(list(entry.events) for entry in played.matches) == sorted(
        [n for _, n in match] for match in matches
    )
    assert dict(played.dropped) == reasons


def test_doubled_event_counts_once() -> None:
    event = {"trigger": "shop.paid", "at": "1s", "payload": {"n": 1}, "key": "a"}
    counted = rule(count=["shop.paid"], at_least=2, within="1m")
    assert not play(counted, [event, event]).matches
    assert [entry.match.params for entry in play(counted, [event, {**event, "key": "b"}]).matches] == [
        {"numbers": [1, 1]}
    ]


def test_events_of_other_rules_are_played_too() -> None:
    event = {"trigger": "shop.paid", "at": 0, "payload": {"n": 1}}
    single = Rule("shop.one", trigger="shop.paid", action="mail.send", when="payload.n == 1")
    assert [list(entry.events) for entry in play(single, [event, event]).matches] == [[0], [1]]
    burst = Rule("shop.burst", trigger="shop.paid", action="mail.send", debounce="5s")
    later = {**event, "at": "9s"}
    assert [list(entry.events) for entry in play(burst, [event, event, later]).matches] == [[0, 1], [2]]


@pytest.mark.parametrize(
    "event",
    [
        {"at": "1s"},
        {"trigger": "shop.paid"},
        {"trigger": "shop.paid", "at": "soon"},
        {"trigger": "shop.paid", "at": "2026-01-31T09:00:00"},
        {"trigger": "shop.paid", "at": 1, "tenant": 7},
        {"trigger": "shop.paid", "at": 1, "other": 1},
        7,
    ],
)
def test_event_of_another_form_is_refused(event: Any) -> None:
    with pytest.raises(InvalidInput):
        play(rule(count=["shop.paid"], at_least=2, within="1m"), [event])


def test_long_list_is_refused() -> None:
    with pytest.raises(InvalidInput, match="1,001 events"):
        play(rule(count=["shop.paid"], at_least=2, within="1m"), [{}] * (MAX_PLAYED + 1))


def test_payload_alone_is_refused_for_a_window() -> None:
    with pytest.raises(InvalidInput, match="for several events"):
        try_rule(rule(count=["shop.paid"], at_least=2, within="1m"), {})


@pytest.mark.parametrize(
    "window",
    [
        {},
        {"sequence": ["shop.paid"], "within": 1},
        {"sequence": ["shop.paid", "shop.sent"]},
        {"sequence": ["shop.paid", "shop.sent"], "within": "2d"},
        {"sequence": ["shop.paid", "shop.sent"], "within": "1d", "timestamp": "payload.at", "lateness": "1s"},
        {"sequence": ["shop.paid", "shop.sent"], "all": ["shop.paid", "shop.sent"], "within": 1},
        {"sequence": ["shop.paid", "shop.sent"], "within": 1, "at_least": 2},
        {"sequence": ["shop.paid", "shop.sent"], "within": 1, "timestamp": "payload.at"},
        {"sequence": ["shop.paid", "shop.sent"], "within": 1, "timestamp": "event.created_at", "lateness": 1},
        {"sequence": ["shop.paid", {"trigger": "shop.sent", "by": "payload.x"}], "within": 1},
        {"all": [{"trigger": "shop.sent", "name": "a"}, {"trigger": "shop.paid", "name": "a"}], "within": 1},
        {
            "all": ["shop.sent", {"trigger": "shop.sent", "by": "payload.y"}],
            "by": "payload.x",
            "within": 1,
        },
        {"any": ["shop.paid", "shop.sent"], "within": 1},
        {"any": ["shop.paid", "shop.sent"], "at_least": 3, "within": 1},
        {"count": ["shop.paid"], "within": 1},
        {"count": ["shop.paid", "shop.sent"], "at_least": 2, "within": 1},
        {"count": "shop.paid", "at_least": 2, "within": 1},
        {"absence": ["shop.paid"], "within": 1},
        {"absence": ["shop.paid", {"trigger": "shop.sent", "name": "x"}], "within": 1},
    ],
)
def test_window_that_cannot_match_is_refused(window: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        Window(**window)


@pytest.mark.parametrize("options", [{}, {"trigger": "shop.paid"}, {"when": "true"}, {"debounce": "5s"}])
def test_rule_has_a_trigger_or_a_window(options: dict[str, Any]) -> None:
    window: dict[str, Any] = {"window": Window(any=["shop.paid", "shop.sent"])} if options else {}
    with pytest.raises(DefinitionError):
        Rule("shop.watch", action="mail.send", **window, **options)
