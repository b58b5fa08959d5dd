"""The statements of docs/testing.md are true: its project has tests that pass."""

from __future__ import annotations

import os
import re
import shlex
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


def _commands() -> list[list[str]]:
    """Return the commands of the page, as they are typed in the folder of its project."""
    typed = re.findall(r"^    penstock (.*)$", PAGE, re.M) + re.findall(
        r"^`penstock (lint [^`]*)`", PAGE, re.M
    )
    return [shlex.split(line, comments=True) for line in typed]


def test_the_commands_of_the_page_need_no_server(project: Path) -> None:
    assert [words[0] for words in _commands()] == ["test", "test", "lint"]
    lines = []
    for words in _commands():
        ran = subprocess.run(
            [sys.executable, "-m", "penstock", *words],
            capture_output=True,
            text=True,
            cwd=project,
            env={**os.environ, "PENSTOCK_DATABASE_URL": "postgresql://127.0.0.1:1/none"},
            timeout=120,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        lines.append(ran.stdout)
    assert "order" in lines[0]
    assert lines[1].strip() == "500"
