"""Limits under kill -9 and duplicate deliveries: the short form of `tests/chaos/test_limits.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos import limits
from tests.flows.installation import Installation


@pytest.mark.parametrize(("limit", "keys"), [(5, 1), (1, 20)])
async def test_limits_hold_in_order_while_processes_are_killed(
    house: Installation, database: str, broker: str | None, tmp_path: Path, limit: int, keys: int
) -> None:
    ledger = await limits.run(
        house, database, broker, tmp_path, limit=limit, keys=keys, count=400, kill_every=1.0
    )
    assert (ledger.over_limit, ledger.out_of_order, ledger.leaked, ledger.lost) == (0, 0, 0, 0), str(ledger)
    await house.sound()
