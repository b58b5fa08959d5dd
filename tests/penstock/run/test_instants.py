"""Instants: one form for all doors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from penstock.run.instants import WrongInstant, instant


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2030-01-31", datetime(2030, 1, 31)),
        ("2030-01-31T09:00", datetime(2030, 1, 31, 9)),
        ("2030-01-31 09:00:05", datetime(2030, 1, 31, 9, 0, 5)),
        ("2030-01-31t09:00:05.25z", datetime(2030, 1, 31, 9, 0, 5, 250_000, UTC)),
        ("2030-01-31T09:00:00+01:00", datetime(2030, 1, 31, 9, tzinfo=timezone(timedelta(hours=1)))),
        ("2030-01-31T09:00:00-0130", datetime(2030, 1, 31, 9, tzinfo=timezone(-timedelta(minutes=90)))),
    ],
)
def test_extended_iso_text_is_read(text: str, expected: datetime) -> None:
    assert instant(text) == expected
    assert instant(text).tzinfo == expected.tzinfo


@pytest.mark.parametrize("value", ["20301231", "5", "5.5", "-5", "1e12", "nan", 5, 1e12, True])
def test_number_is_refused(value: object) -> None:
    with pytest.raises(WrongInstant, match="neither as a date nor as Unix seconds"):
        instant(value)


@pytest.mark.parametrize(
    "value",
    [
        *("20301231T090000Z", "2030-W05-1", "2030-01-31T09", "2030-01-31x09:00", "2030-01-31T09:00 ", ""),
        *("٢٠٣٠-01-31", "2030-02-30", "2030-01-31T09:00+25:00", None, ["2030-01-31"]),
    ],
)
def test_other_form_is_refused(value: object) -> None:
    with pytest.raises(WrongInstant):
        instant(value)
