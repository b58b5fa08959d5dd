"""Everything breaks, and nothing is lost, done twice, over its limit or out of order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chaos.run import DEFAULT, SHORT, chaos


async def test_whatever_breaks_everything_is_done_once_and_right(
    minutes: float,
    seed: int,
    only: Sequence[str],
    library: Path | None,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    short = request.config.getoption("--thresholds") == "short"
    log = tmp_path / "services.log"
    run = await chaos(
        log,
        seconds=minutes * 60,
        seed=seed,
        settings=SHORT if short else DEFAULT,
        patience=(120 if only else 300) if short else 600,
        pace=(1.0 if short else 4.0) * (0.5 if only else 1.0),
        only=only,
        library=library,
    )
    with capsys.disabled():
        print(f"\n{run.text}\nlog of the services: {log}")
    assert not run.ledger.faults_found, run.text
    # A run in which little was done, or little was broken, says nothing.
    assert run.ledger.right >= 50 * 60 * minutes
    assert len(run.faults) >= (2 if only or not short else 10) * minutes
