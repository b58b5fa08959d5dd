"""The reference worker conforms, and the conformance program finds faults that are planted in it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.sdk.conformance import ROOT, faults, verdicts

REFERENCE = ROOT / "sdk/reference"

PLANTED = {
    "no cancellation": ('in answer["cancel"]', "in []", "cancelled_in_the_midst"),
    "no second request": (
        'message = {**message, "again": True}',
        'message = {**message, "request": str(uuid.uuid4())}',
        "take_again_is_the_same_request",
    ),
    "results as text": ('"result": result}', '"result": str(result)}', "result_object"),
    "no state": ('"state": defer.state}', '"state": None}', "deferral_carries_state"),
    "every failure is retried": (
        '"error": failed.error}',
        '"error": {"type": "E"}}',
        "failure_without_retry",
    ),
    "no bye": ('self.gateways.call("bye", {}, until=lambda: True)', "pass", "drain_lets_work_end"),
}
"""Faults: what is replaced in the reference worker, by what, and the case that finds it."""


def test_reference_worker_conforms() -> None:
    assert faults(sys.executable, str(REFERENCE / "conformance.py")) == {}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_fault_is_found(name: str, tmp_path: Path) -> None:
    old, new, case = PLANTED[name]
    source = (REFERENCE / "worker.py").read_text()
    assert source.count(old) == 1, "the fault has no place any more"
    (tmp_path / "worker.py").write_text(source.replace(old, new))
    (tmp_path / "conformance.py").write_text((REFERENCE / "conformance.py").read_text())
    [verdict] = verdicts(sys.executable, str(tmp_path / "conformance.py"), options=("--only", case))
    assert verdict["fault"] is not None
