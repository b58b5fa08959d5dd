"""Faults of one kind, and no other, so that nothing heals by chance what it should heal from by itself: a restart of
a process declares again what was deleted, and brings back a replica that has lost its broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.run import SHORT, chaos

SECONDS = 40
KINDS = (
    "hostile broker",
    "topology deleted",
    "SIGTERM",
    "requests lost",
    "answer lost",
    "kill -9 all workers",
    "kill -9 a gateway",
)


@pytest.mark.parametrize("kind", KINDS)
async def test_damage_of_one_kind_of_fault_heals_by_itself(
    kind: str, seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = await chaos(
        tmp_path / "services.log",
        seconds=SECONDS,
        seed=seed,
        settings=SHORT,
        patience=120,
        pace=0.5,
        only=[kind],
    )
    with capsys.disabled():
        print(f"\n{run.text}")
    assert not run.ledger.faults_found, run.text
    assert run.ledger.right >= 50 * SECONDS
    assert len(run.faults) >= 3
