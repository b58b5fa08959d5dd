"""The reference worker conforms, and the conformance program finds faults that are planted in it."""

from __future__ import annotations

import os
import socket
import subprocess
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
    "no line is sent": (
        'self._write("log", "lines", ',
        '(lambda *_: None)("log", "lines", ',
        "log_lines_in_order",
    ),
    "lines without an order": ("self.lines += 1", "self.lines = 1", "log_lines_in_order"),
    "no progress": (
        'self._write("progress", "reports", ',
        '(lambda *_: None)("progress", "reports", ',
        "progress_is_reported",
    ),
    "more attempts than slots": (
        '"slots": slots, "wait": wait}',
        '"slots": 50, "wait": wait}',
        "no_more_than_its_slots",
    ),
    "a constant request id": (
        '"request": str(uuid.uuid4())',
        '"request": "5f0c7a3e-0000-4000-8000-000000000001"',
        "request_ids_are_unique",
    ),
    "no timeout": ("time.monotonic() > self.deadline", "False", "time_runs_out"),
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


def test_reference_worker_stops_while_no_gateway_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environment = {
            **os.environ,
            "PENSTOCK_SERVER": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "PENSTOCK_TOKEN": "pst_x",
            "PENSTOCK_NAME": "w",
            "PENSTOCK_ROUTES": "default",
            "PENSTOCK_SLOTS": "1",
            "PENSTOCK_GRACE": "1",
        }
        words = [sys.executable, str(REFERENCE / "conformance.py")]
        worker = subprocess.Popen(words, env=environment)
        try:
            silent.settimeout(60)
            connection, _ = silent.accept()  # its hello
            worker.terminate()
            connection.close()
            assert worker.wait(60) == 0
        finally:
            worker.kill()
            worker.wait()
