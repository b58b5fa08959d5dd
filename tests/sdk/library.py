"""The library for Node, built as a user builds it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.sdk.conformance import ROOT

SDK = ROOT / "sdk/typescript"


def build_library(folder: Path) -> Path:
    """Build a copy of the library in `folder`. Return the folder of the copy."""
    copy = folder / "typescript"
    shutil.copytree(SDK, copy, ignore=shutil.ignore_patterns("node_modules", "dist"))
    for words in (["npm", "ci", "--no-audit", "--no-fund"], ["npm", "run", "build"]):
        done = subprocess.run(words, cwd=copy, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    return copy
