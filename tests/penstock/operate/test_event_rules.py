"""The verdicts of rules on events: their sentences, also those about bursts and windows."""

from datetime import UTC, datetime, timedelta

import pytest

from penstock.language.terms.ids import new_id
from penstock.language.terms.windows import Window
from penstock.operate.event_rules import _of_burst
from penstock.store.events.bursts import BurstOfEvent

AT = datetime(2030, 1, 31, 9, tzinfo=UTC)


def test_verdict_on_closed_burst_says_whether_the_rule_started_something() -> None:
    event, execution = new_id(), new_id()
    failed = BurstOfEvent("shop.index", "public", "a", None, None, event, 3, None, AT, None)
    started = BurstOfEvent("shop.index", "public", "a", None, None, event, 3, None, AT, execution)
    beginning = "the event is part of a burst of 3 events, which closed at 2030-01-31 09:00:00 UTC. "
    assert _of_burst(failed, event)["why"] == f"{beginning}The rule failed on the parameters of this event"
    assert _of_burst(started, new_id())["why"] == (
        f"{beginning}The rule started one execution for the whole burst, with the parameters of event {event}"
    )


@pytest.mark.parametrize(
    ("filled", "sentence"),
    [
        (
            [0],
            "waits for an event of shop.paid until noon. So far, the rule has 1 of the 2 events that it needs",
        ),
        ([0, 1], "has all events that it needs, and starts its action at noon at the latest"),
    ],
)
def test_state_of_a_window_names_its_consequence(filled: list[int], sentence: str) -> None:
    window = Window("sequence", 2, 2, timedelta(minutes=5))
    assert window.state(filled, ["shop.placed", "shop.paid"], "noon") == sentence
