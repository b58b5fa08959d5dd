"""Type checkers find Penstock from outside of it, where it is installed from a checkout, and see what a user's project gets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parent / "typed_project"


def test_mypy_sees_the_types_of_a_users_project(tmp_path: Path) -> None:
    shutil.copy(PROJECT / "shop.py", tmp_path)
    mypy = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--cache-dir",
        str(tmp_path / "cache"),
    ]
    ran = subprocess.run(
        [*mypy, "shop.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name not in ("MYPYPATH", "PYTHONPATH")},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
