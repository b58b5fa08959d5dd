"""The fires that a drawing of the next hours shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from penstock import Schedule
from penstock.client.schedules import spread
from penstock.language.schedules.compiled_schedule import compile_schedule

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)
DAY, QUARTER = timedelta(days=1), timedelta(minutes=15)


@pytest.mark.parametrize(
    ("cron", "count", "last"),
    [
        ("* * * * *", 96, timedelta(hours=23, minutes=45)),
        ("*/15 * * * *", 96, timedelta(hours=23, minutes=45)),
        ("*/5 14 * * *", 4, timedelta(hours=2, minutes=45)),
        ("0 2 * * *", 1, timedelta(hours=14)),
        ("0 2 1 1 *", 0, None),
    ],
)
def test_spread_reaches_the_end_of_the_span(cron: str, count: int, last: timedelta | None) -> None:
    compiled = compile_schedule(Schedule("a.b", action="a.c", cron=cron).body())
    fires = spread(compiled, NOON, NOON + DAY, QUARTER)
    assert len(fires) == count
    assert [fire - NOON for fire in fires[-1:]] == ([] if last is None else [last])
