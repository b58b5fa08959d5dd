"""Random programs of several attempts, crashed and suspended, agree with their plain play, crashed or not."""

from __future__ import annotations

import pytest

from tests.durable_programs.programs import PARTS, check_programs

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")


@pytest.mark.parametrize("part", PARTS["again"])
def test_crashes_change_nothing_in_programs(part: int) -> None:
    check_programs("again", part)
