"""The peers' own virtual environment: made when they are asked for, and again when their requirements change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.errors import CannotMeasure
from bench.systems import NODE_FOLDER, PEERS, node

ROOT = PEERS.parent
PYTHON = PEERS / "bin" / "python"
REQUIREMENTS = ROOT / "bench" / "requirements.txt"
PACKAGES = (ROOT / "bench" / "package.json", ROOT / "bench" / "package-lock.json")
INSTALLED = PEERS / "requirements.txt"
NODE_INSTALLED = NODE_FOLDER / "installed.json"
"""Copies of what was installed."""


def missing() -> bool:
    """Return whether `install` has something to do."""
    return not INSTALLED.exists() or INSTALLED.read_text() != REQUIREMENTS.read_text()


def install() -> None:
    """Install the pinned, hashed requirements. Raises CannotMeasure with pip's last words."""
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--no-input", "--require-hashes"]
    for command in ([sys.executable, "-m", "venv", "--clear", str(PEERS)], [*pip, "-r", str(REQUIREMENTS)]):
        _run(command, "--only penstock,probe does without them.")
    INSTALLED.write_text(REQUIREMENTS.read_text())


def node_missing() -> bool:
    """Return whether `install_node` has something to do."""
    return not NODE_INSTALLED.exists() or NODE_INSTALLED.read_text() != PACKAGES[1].read_text()


def install_node() -> None:
    """Install what comes from npm, as package-lock.json has it, with the npm and for the Node.js of the virtual
    environment. No package's own script is run. Raises CannotMeasure with npm's last words."""
    NODE_FOLDER.mkdir(exist_ok=True)
    for file in PACKAGES:
        shutil.copy(file, NODE_FOLDER)
    npm = node() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(node() / "bin" / "node"), str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    _run(command, "--only with the names of the others does without it.", cwd=NODE_FOLDER)
    NODE_INSTALLED.write_text(PACKAGES[1].read_text())


def _run(command: list[str], hint: str, cwd: Path = ROOT) -> None:
    path = os.pathsep.join([str(Path(command[0]).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise CannotMeasure(f"not installed: {done.stdout[-1500:].strip()}", hint=hint)
    os.sync()  # The system that is measured next waits for its own disk writes alone.
