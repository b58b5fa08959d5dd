"""Plants a fault in a copy of the sources and runs the test that must find it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.crash.processes import ROOT, python_path

LEFT_OUT = shutil.ignore_patterns(
    ".venv*", "build", ".git", "__pycache__", "*.egg-info", ".*_cache", ".hypothesis", ".penstock"
)
PATIENCE = 300


@dataclass(frozen=True)
class Fault:
    what: str
    breaks: str
    file: str
    old: str
    new: str
    test: str

    def planted(self, folder: Path) -> None:
        """Raises ValueError if the source is not what the fault was written for."""
        path = folder / self.file
        source = path.read_text()
        if source.count(self.old) != 1:
            raise ValueError(f"{self.what}: {self.file} has {source.count(self.old)} times: {self.old}")
        path.write_text(source.replace(self.old, self.new))


def faults() -> Sequence[Fault]:
    return [
        Fault(**one) for one in tomllib.loads(Path(__file__).with_name("faults.toml").read_text())["fault"]
    ]


def found(fault: Fault, folder: Path) -> bool:
    """Return true if the test fails once the fault is planted in a copy of the sources below `folder`."""
    copy = folder / "copy"
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    fault.planted(copy)
    command = [sys.executable, "-m", "pytest", *shlex.split(fault.test), "-x", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command,
        cwd=copy,
        env={**os.environ, "PYTHONPATH": python_path(copy)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if done.returncode not in (0, 1) or "error during collection" in done.stdout:
        raise ValueError(f"{fault.what}: the test did not run:\n{done.stdout[-2000:]}{done.stderr[-1000:]}")
    return done.returncode == 1
