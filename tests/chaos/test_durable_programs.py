"""Random durable programs against the oracle, more than `make test` has time for: `make chaos ARGS="--programs 100000"`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from tests.durable_programs.agreement import check_crashed, check_ended
from tests.durable_programs.end_requests import EndPoint
from tests.durable_programs.statements import Program
from tests.durable_programs.strategies import (
    Kind,
    asked_programs,
    crash_points,
    ends,
    late_attempts,
    programs,
)

EACH = 2_000
"""Programs for each seed: hypothesis remembers all of a run."""
Agree = Callable[[Program, list[int], dict[int, int], list[EndPoint]], None]
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited"),
    pytest.mark.timeout(0),  # `--programs` says how long a test takes
]


@pytest.fixture
def count(request: pytest.FixtureRequest) -> int:
    """Return how many programs a test plays."""
    return int(request.config.getoption("--programs"))


def test_programs_agree_with_their_plain_play(
    seed: int, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def agree(program: Program, points: list[int], late: dict[int, int], requests: list[EndPoint]) -> None:
        check_crashed(program, points, late, requests)

    text = _play(programs(), agree, count, seed)
    with capsys.disabled():
        print(f"\n{text}")


@pytest.mark.parametrize("kind", ["once", "again"])
def test_programs_that_are_asked_to_end_agree_with_plain_play(
    kind: Kind, seed: int, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def agree(program: Program, points: list[int], late: dict[int, int], requests: list[EndPoint]) -> None:
        check_ended(program, points, requests, late)

    text = _play(asked_programs(only=kind), agree, count, seed)
    with capsys.disabled():
        print(f"\n{kind}: {text}")


def _play(drawn: st.SearchStrategy[Program], agree: Agree, wanted: int, seed: int) -> str:
    """Play so many programs, and return which were played. Raises Disagreement for the smallest program that disagrees."""
    played, number = 0, seed

    def check(program: Program, points: list[int], late: dict[int, int], requests: list[EndPoint]) -> None:
        nonlocal played
        agree(program, points, late, requests)
        played += 1

    while played < wanted:
        count = settings(
            max_examples=min(EACH, wanted - played),
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )
        seeded(number)(count(given(drawn, crash_points, late_attempts, ends)(check)))()
        number += 1
    return f"{played} programs of the seeds {seed} to {number - 1}: no disagreement"
