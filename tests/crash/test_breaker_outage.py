"""A service that is down behind a breaker, while processes are killed: the short form of `tests/chaos/breaker_outage.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos import breaker_outage
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport


@pytest.mark.parametrize("counts_running", [False, True])
async def test_outage_is_met_by_threshold_and_probes_alone(
    house: Installation, database: str, broker: str | None, tmp_path: Path, *, counts_running: bool
) -> None:
    outage = await breaker_outage.run(
        house, database, broker, tmp_path,
        seconds=8, rate=60, kill_every=1.5, seed=3, counts_running=counts_running,
    )  # fmt: skip
    assert not outage.faults(), f"{outage}\n{outage.faults()}"
    assert outage.kills > 3
    assert outage.probes > 0
