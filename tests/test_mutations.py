"""The faults that `python -m tests.chaos.mutations` plants are still faults of these sources."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.chaos.mutations import ROOT, Fault, faults


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.what)
def test_it_can_be_planted_and_its_test_is_there(tmp_path: Path, fault: Fault) -> None:
    source = tmp_path / fault.file
    source.parent.mkdir(parents=True)
    shutil.copy(ROOT / fault.file, source)
    fault.planted(tmp_path)
    assert source.read_text() != (ROOT / fault.file).read_text()
    assert (ROOT / fault.test.split()[0]).exists()


def test_there_are_enough_of_them() -> None:
    assert len(faults()) >= 15
