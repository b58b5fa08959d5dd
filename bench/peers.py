"""The peers' own virtual environment: made when they are asked for, and again when their requirements change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from penstock.errors import ConfigurationError

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".venv-bench"
PYTHON = FOLDER / "bin" / "python"
REQUIREMENTS = ROOT / "bench" / "requirements.txt"
INSTALLED = FOLDER / "requirements.txt"
"""A copy of what was installed."""


def missing() -> bool:
    """Whether `install` has something to do."""
    return not INSTALLED.exists() or INSTALLED.read_text() != REQUIREMENTS.read_text()


def install() -> None:
    """Install the pinned, hashed requirements. Raises ConfigurationError with pip's last words."""
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--no-input", "--require-hashes"]
    for command in ([sys.executable, "-m", "venv", "--clear", str(FOLDER)], [*pip, "-r", str(REQUIREMENTS)]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise ConfigurationError(
                f"The peers could not be installed:\n{done.stdout[-1500:]}",
                hint="--only penstock,probe does without them.",
            )
    INSTALLED.write_text(REQUIREMENTS.read_text())
