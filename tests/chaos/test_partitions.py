"""A short form of `python -m tests.chaos.partitions`: one partition of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.partitions.run import partitions

KINDS = (
    "rabbit 1 | rabbit 2",
    "rabbit 3 | other nodes",
    "executor 1 | all nodes",
    "worker 1 | rabbit 2",
    "client | all nodes",
    "executor 2 | PgBouncer",
    "worker 2 | PgBouncer",
    "PgBouncer | primary",
    "primary | standby",
    "primary | everybody",
)


async def test_no_partition_loses_work_and_all_goes_on(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = await partitions(tmp_path / "services.log", seconds=0, rate=100, seed=seed, only=KINDS)
    with capsys.disabled():
        print(f"\n{run.text}")
    assert not run.broken, run.broken
    assert [
        partition.name for partition in sorted(run.parted, key=lambda partition: KINDS.index(partition.name))
    ] == list(KINDS)
