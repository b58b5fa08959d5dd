"""Limits under kill -9 and duplicate deliveries, at full length: `make chaos ARGS="-k limits -s"`. Prints the ledger."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.chaos import limits
from tests.flows.installation import Installation

COUNT = int(os.environ.get("PENSTOCK_CHAOS_COUNT", "10000"))


@pytest.mark.parametrize("keys", [1, 1000])
@pytest.mark.parametrize("limit", [1, 5, 100])
async def test_limits_hold_in_order_while_processes_are_killed(
    house: Installation, database: str, broker: str | None, tmp_path: Path, limit: int, keys: int
) -> None:
    ledger = await limits.run(
        house, database, broker, tmp_path, limit=limit, keys=keys, count=COUNT,
        kill_every=4.0 if limit * keys < 100 else 0.5,  # where many run at once it does not take long
    )  # fmt: skip
    print(f"\n{ledger}")
    assert (ledger.over_limit, ledger.out_of_order, ledger.leaked, ledger.lost) == (0, 0, 0, 0)
    await house.sound()
