"""Windows of a key are decided once no earlier event can join them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from penstock import Rule, Window
from penstock.language.rules.event_rules import compile_rule
from penstock.language.terms.ids import new_id
from penstock.store.events.bursts import BurstEvent, BurstKey, Watch
from penstock_executor.window_matches import decided

AT = datetime(2026, 1, 31, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RULE = Rule(
    "ops.alert",
    action="ops.page",
    window=Window(count=["ops.failed"], at_least=2, within="1h", timestamp="payload.at", lateness="10m"),
)


def test_match_waits_for_lateness_after_its_last_event() -> None:
    """The first event made its key due. The second one can still be preceded by an event that is stored late."""
    of = BurstKey("ops.alert", "public", "[]")
    first, second = (BurstEvent(of, new_id(), AT + at, 1, 0, (0,)) for at in (timedelta(0), 9 * MINUTE))
    compiled = {1: compile_rule(RULE.body())}
    watch = Watch("ops.alert", 1, AT - MINUTE)
    early = decided([first, second], watch, compiled, AT + 11 * MINUTE, is_cut=False)
    assert (early.matches, early.due_at) == ([], AT + 19 * MINUTE)
    late = decided([first, second], watch, compiled, AT + 20 * MINUTE, is_cut=False)
    assert [match.events for match in late.matches] == [[first, second]]
