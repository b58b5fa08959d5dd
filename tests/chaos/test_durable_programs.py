"""Random durable programs against the oracle, more than `make test` has time for: `make chaos ARGS="--programs 100000"`."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded

from tests.durable_programs.agreement import check_crashed
from tests.durable_programs.end_requests import EndPoint
from tests.durable_programs.statements import Program
from tests.durable_programs.strategies import crash_points, ends, late_attempts, programs

EACH = 2_000
"""Programs for each seed: hypothesis remembers all of a run."""


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_programs_agree_with_their_plain_play(
    seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted, played, drawn = int(request.config.getoption("--programs")), 0, 0

    def agree(program: Program, points: list[int], late: dict[int, int], requests: list[EndPoint]) -> None:
        nonlocal played
        check_crashed(program, points, late, requests)
        played += 1

    while played < wanted:
        count = settings(
            max_examples=min(EACH, wanted - played),
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )
        seeded(seed + drawn)(count(given(programs(), crash_points, late_attempts, ends)(agree)))()
        drawn += 1
    with capsys.disabled():
        print(f"\n{played} programs of the seeds {seed} to {seed + drawn - 1}: no disagreement")
