"""What people read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from penstock.cli.output import age, span, text


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-1, "0 ms"),
        (0, "0 ms"),
        (0.0354, "35 ms"),
        (0.9999, "1.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (99.9, "100 s"),
        (100, "2 min"),
        (5999, "100 min"),
        (7200, "2 h"),
        (172_800, "2 d"),
    ],
)
def test_a_length_of_time_has_two_or_three_digits(seconds: float, said: str) -> None:
    assert span(timedelta(seconds=seconds)) == said


def test_what_never_was_has_no_age() -> None:
    assert age(None) == ""
    assert age(datetime.now(UTC) + timedelta(hours=1)) == "0 ms ago"


def test_values_are_shown_as_they_are() -> None:
    assert text("[red]not markup[/red]") == r"\[red]not markup\[/red]"
    assert text([True, None, {"a": 1}]) == 'yes, , {"a":1}'
    assert text(datetime(2026, 1, 2, 3, 4, 5, 678_900, UTC)) == "2026-01-02 03:04:05.678"
    assert text("failed") == "[red]failed[/red]"
