from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.language.terms.durations import as_text, positive_seconds, seconds
from penstock.run.durations import LONGEST


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (10, 10),
        (0, 0),
        (1.5, 1.5),
        (timedelta(minutes=2), 120),
        ("10s", 10),
        ("5m", 300),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("2d", 172_800),
        ("1w", 604_800),
        ("250ms", 0.25),
        ("1s500ms", 1.5),
        ("1.5h", 5400),
        ("0.1s0.2s", None),
        ("", None),
        ("10", None),
        ("-5s", None),
        ("5 minutes", None),
        ("30m1h", None),
        (-1, None),
        (float("nan"), None),
        (float("inf"), None),
        (LONGEST + 1, None),
        (True, None),
        (None, None),
        ([1], None),
    ],
)
def test_durations_are_read_as_people_write_them(written: object, expected: float | None) -> None:
    if expected is None:
        with pytest.raises(ValueError) as raised:
            seconds(written)
        assert "1h30m" in str(raised.value.hint)  # type: ignore[attr-defined]
    else:
        assert seconds(written) == expected


def test_whole_seconds_are_the_same_however_they_were_written() -> None:
    assert {repr(seconds(one)) for one in (300, 300.0, "5m", timedelta(minutes=5))} == {"300"}


def test_a_period_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than 0"):
        positive_seconds("0s")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0s"),
        (0.25, "250ms"),
        (90, "1m30s"),
        (3600, "1h"),
        (691_261.5, "1w1d1m1s500ms"),
        (LONGEST, "5228w4d"),
    ],
)
def test_durations_are_written_as_people_read_them(number: float, text: str) -> None:
    assert as_text(number) == text
    assert seconds(text) == number
