"""Random durable programs on executors and workers that die, more than `make proof` has time for: `make chaos
ARGS="--programs-on-services 200 --seed 7"`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.processes import Fleet
from tests.durable_programs import mortal, on_services
from tests.flows.installation import Installation

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
EACH = 10
"""Programs at the same time."""


@pytest.fixture
def batches(seed: int, request: pytest.FixtureRequest) -> list[on_services.Drawn]:
    """Made where no event loop runs: plain plays have one of their own."""
    count = int(request.config.getoption("--programs-on-services"))
    return [on_services.draw(min(EACH, count - begin), seed=seed + begin) for begin in range(0, count, EACH)]


@pytest.mark.timeout(0)  # each program has its own
async def test_programs_on_dying_workers_agree_with_their_plain_play(
    batches: list[on_services.Drawn],
    house: Installation,
    database: str,
    broker: str | None,
    seed: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    calls = tmp_path / "calls"
    monkeypatch.setenv(mortal.DEATHS, "0.03")
    monkeypatch.setenv(mortal.CALLS, str(calls))
    whole = on_services.Report()
    for drawn in batches:
        with Fleet(database, broker, tmp_path / "services.log") as fleet:
            whole.add(await on_services.play_on_services(house, fleet, drawn, calls))
        with capsys.disabled():
            print(f"\nseed {seed}: {whole}")
    on_services.check_report(whole)
    await house.sound()
