"""Twenty seconds of what `make chaos` does for minutes."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.run import SHORT, chaos


async def test_processes_servers_and_network_break_and_all_is_done_once_and_right(tmp_path: Path) -> None:
    run = await chaos(tmp_path / "services.log", seconds=20, seed=1, settings=SHORT, patience=120)
    assert not run.ledger.faults_found, run.text
    assert run.ledger.right >= 100
    assert len(run.faults) >= 3, "a long one may take most of the time"
