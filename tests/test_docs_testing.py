"""The statements of docs/testing.md are true: its project has tests that pass."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs/testing.md").read_text()
FILE = re.compile(r"^```\w+\n# ([\w.]+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name, text in FILE.findall(PAGE):
        (folder / name).write_text(text)
    return folder


def test_the_tests_of_the_page_pass(project: Path) -> None:
    assert len(list(project.glob("test_*.py"))) == PAGE.count("\n# test_") > 3
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(project)],
        capture_output=True,
        text=True,
        cwd=project,
        timeout=120,
    )
    written = sum(
        len(re.findall(r"^(?:async )?def test_", test.read_text(), re.M))
        for test in project.glob("test_*.py")
    )
    assert f"{written} passed" in ran.stdout, ran.stdout + ran.stderr
