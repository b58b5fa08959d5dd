"""Failures are shown as they come."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOOKS = """
import pytest
from tests.failures_at_once import FailuresAtOnce

@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    config.pluginmanager.register(FailuresAtOnce(config.pluginmanager.get_plugin("terminalreporter")))
"""


def test_a_failure_is_shown_before_the_next_test_ends(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(HOOKS)
    (tmp_path / "test_two.py").write_text(
        "import os\ndef test_fails(): assert 'salt' == 'pepper'\ndef test_stops(): os._exit(7)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 7
    assert "call failed: test_two.py::test_fails" in ran.stdout
    assert "'salt' == 'pepper'" in ran.stdout
