"""Random programs of one attempt, crashed and suspended, agree with their plain play."""

from __future__ import annotations

import pytest

from tests.durable_programs.programs import PARTS, check_programs

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")


@pytest.mark.parametrize("part", PARTS["once"])
def test_crashes_change_nothing_in_programs(part: int) -> None:
    check_programs("once", part)
