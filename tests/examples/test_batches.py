"""The example of a function with batches stores each reading once."""

from __future__ import annotations

import shelve
from pathlib import Path
from typing import Any

import pytest

from penstock.language.definitions.importing import imported_file
from penstock.testing import Simulation

EXAMPLE = Path(__file__).parents[2] / "examples/batches.py"


def test_readings_of_a_batch_are_stored_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example: Any = imported_file(EXAMPLE)
    monkeypatch.setenv(example.FILE, str(tmp_path / "readings"))
    simulation = Simulation(example)
    simulation.lose_worker(example.store, when="after")
    readings = [{"sensor": "attic", "celsius": degrees} for degrees in (21.5, 22.0, -12.0)]
    assert simulation.run(example.store_all, readings=readings).status == "completed"
    bad = simulation.run(example.store, sensor="shed", celsius=-999)
    assert (bad.status, bad.error and bad.error["message"]) == ("failed", "-999.0 °C is impossible")
    with shelve.open(str(tmp_path / "readings")) as stored:
        assert sorted(reading["celsius"] for reading in stored.values()) == [-12.0, 21.5, 22.0]
