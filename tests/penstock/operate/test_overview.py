"""The percentiles of the overview, over all executions that ended in its span."""

from __future__ import annotations

from contextlib import nullcontext
from statistics import quantiles
from uuid import UUID

import pytest

from penstock.operate import activity
from penstock.operate.activity import SECONDS, SLICES, ActivityWatch
from penstock.operate.overview import RecentActivity, lately
from penstock.store.session import clock
from penstock.store.upkeep.overview import RESOLUTION, percentile
from tests.flows.installation import Installation

END = "insert into history (execution_id, at, new, attempt) values ($1, to_timestamp($2::float8), 'completed', 1)"


async def end(house: Installation, at: float, took: float, number: int) -> None:
    """Store the end of an archived execution at the instant `at`, `took` seconds after its creation."""
    created_ms = int((at - took) * 1000)
    await house.rows(END, UUID(int=created_ms << 80 | 7 << 76 | 2 << 62 | number), at)


async def recent(house: Installation) -> RecentActivity:
    return lately(await ActivityWatch().look(lambda: nullcontext(house.session), 60.0))


async def test_percentiles_are_those_of_all_ends_of_the_span(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "PATIENCE", 60.0)
    now = (await clock.now(house.session)).timestamp()
    seconds = [100.0] * 60 + [10.0] * 30
    for number, took in enumerate(seconds):
        await end(house, now - 30 - 5 * number, took, number)
    await end(house, now - 1, 0.5, 99)  # the newest slice has a short execution alone
    figures = await recent(house)
    expected = quantiles([0.5, *seconds], n=100, method="inclusive")
    assert figures.p50 == pytest.approx(expected[49], rel=0.01)
    assert figures.p95 == pytest.approx(expected[94], rel=0.01)
    assert figures.span == SECONDS * SLICES


async def test_span_of_percentiles_is_that_of_the_counted_slices(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        activity, "PATIENCE", -1.0
    )  # as on a busy database: a look counts the newest slices only
    now = (await clock.now(house.session)).timestamp()
    await end(house, now - 600, 100.0, 1)
    figures = await recent(house)
    assert (figures.span < SECONDS * SLICES, figures.p50, figures.p95) == (True, None, None)


async def test_short_and_negative_durations_are_in_the_first_bin(house: Installation) -> None:
    now = (await clock.now(house.session)).timestamp()
    for number, took in enumerate((0.0, -5.0)):  # the clock of the creator may be ahead
        await end(house, now - 20, took, number)
    assert (await recent(house)).p95 == pytest.approx(0.001, rel=0.01)


def test_percentile_lies_between_the_two_middle_durations() -> None:
    assert percentile({}, 0.5) is None
    low, high = percentile({0: 1}, 0.5), percentile({100: 1}, 0.5)
    assert low is not None
    assert high is not None
    assert high / low == pytest.approx(RESOLUTION**100)
    assert percentile({0: 1, 100: 1}, 0.5) == pytest.approx((low + high) / 2)
    assert percentile({0: 1, 100: 1}, 1.0) == pytest.approx(high)
