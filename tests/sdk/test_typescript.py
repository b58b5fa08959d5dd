"""The library for Node: it is built from its lock file, is small, and conforms."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.sdk.conformance import ROOT, faults

SDK = ROOT / "sdk/typescript"

pytestmark = pytest.mark.skipif(shutil.which("npm") is None, reason="this machine has no Node")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the library that was built as a user builds it."""
    folder = tmp_path_factory.mktemp("sdk") / "typescript"
    shutil.copytree(SDK, folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    for words in (["npm", "ci", "--no-audit", "--no-fund"], ["npm", "run", "build"]):
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_worker_of_the_library_conforms(built: Path) -> None:
    assert faults("node", str(built / "dist/test/conformance.js")) == {}


def test_package_is_small_and_depends_on_nothing(built: Path) -> None:
    words = ["npm", "pack", "--dry-run", "--json"]
    done = subprocess.run(words, cwd=built, capture_output=True, text=True, timeout=120, env=os.environ)
    [package] = json.loads(done.stdout)
    assert package["size"] < 100_000
    assert not json.loads((SDK / "package.json").read_text()).get("dependencies")


def test_versions_of_the_library_agree() -> None:
    stated = json.loads((SDK / "package.json").read_text())["version"]
    [in_code] = re.findall(r'VERSION = "(.*)"', (SDK / "src/worker.ts").read_text())
    [ours] = re.findall(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert stated == in_code == ours


def test_lock_file_names_no_host() -> None:
    assert "://" not in (SDK / "package-lock.json").read_text()
