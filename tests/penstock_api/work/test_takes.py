"""The ends of waits of takes."""

from __future__ import annotations

import pytest

from penstock_api.work.takes import LONG_S, TOGETHER_S, end_of_wait


@pytest.mark.parametrize("now", [0.0, 12.25, 1e6 + 0.999])
def test_short_wait_ends_on_time(now: float) -> None:
    assert end_of_wait(now, 0.5) == now + 0.5
    assert end_of_wait(now, LONG_S - 1) == now + LONG_S - 1


def test_long_waits_end_together_and_never_late() -> None:
    ends = {end_of_wait(100.0 + part / 100, 60.0) for part in range(100)}
    assert ends == {160.0}
    for part in range(300):
        until = 100.0 + part / 7 + 60.0
        assert until - TOGETHER_S < end_of_wait(until - 60.0, 60.0) <= until
