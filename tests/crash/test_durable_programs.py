"""Random durable programs on workers that kill themselves around commits: each has the result, the calls, the undos and the
children of its plain play. tests/chaos/test_programs_on_services.py plays more of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.processes import Fleet
from tests.durable_programs import mortal, on_services
from tests.flows.installation import Installation

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")


@pytest.fixture(scope="module")
def drawn() -> on_services.Drawn:
    """Made where no event loop runs: plain plays have one of their own."""
    return on_services.draw(6, seed=1)


async def test_programs_on_dying_workers_agree_with_their_plain_play(
    drawn: on_services.Drawn,
    house: Installation,
    database: str,
    broker: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = tmp_path / "calls"
    monkeypatch.setenv(mortal.DEATHS, "0.03")
    monkeypatch.setenv(mortal.CALLS, str(calls))
    with Fleet(database, broker, tmp_path / "services.log") as fleet:
        report = await on_services.play_on_services(house, fleet, drawn, calls)
    on_services.check_report(report)
    await house.sound()
