"""The faults that `python -m tests.chaos.mutations` plants are still faults of these sources."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.mutations import LEFT_OUT, Fault, faults
from tests.crash.processes import ROOT, python_path

TRANSPORTS = ("rabbitmq", "postgres")
WHAT_A_PROCESS_RUNS = """
import pathlib, subprocess, sys
from tests.crash.processes import Fleet
where = "import penstock, penstock_executor as e, penstock_worker as w; print(penstock.__path__, e.__path__, w.__path__)"
subprocess.run([sys.executable, "-c", where], env=Fleet("", None, pathlib.Path("log")).environment, check=True)
"""


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.what)
def test_it_can_be_planted_and_its_test_is_there(tmp_path: Path, fault: Fault) -> None:
    source = tmp_path / fault.file
    source.parent.mkdir(parents=True)
    shutil.copy(ROOT / fault.file, source)
    fault.planted(tmp_path)
    assert source.read_text() != (ROOT / fault.file).read_text()
    assert (ROOT / fault.test.split()[0]).exists()


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.what)
def test_words_that_choose_its_test_are_in_the_file(fault: Fault) -> None:
    """A fault whose words choose no test any more is not looked for."""
    path, *options = shlex.split(fault.test)
    files = [ROOT / path] if path.endswith(".py") else (ROOT / path).rglob("*.py")
    text = "\n".join(file.read_text() for file in files).lower()
    words = set(re.findall(r"\w+", " ".join(options).lower())) - {"k", "and", "or", "not", *TRANSPORTS}
    assert [word for word in words if word not in text] == []


def test_there_are_enough_of_them() -> None:
    assert len(faults()) >= 15


def test_processes_that_tests_of_a_copy_start_run_the_copy(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    done = subprocess.run(
        [sys.executable, "-c", WHAT_A_PROCESS_RUNS],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": python_path(copy)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.count(str(copy)) == 3, done.stderr
    assert str(ROOT) not in done.stdout
