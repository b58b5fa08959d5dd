"""Runs of `penstock worker-conformance`, as its users run it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def verdicts(*command: str, options: Sequence[str] = ("--short",)) -> list[dict[str, Any]]:
    """Return the verdicts on the worker of a command."""
    words = [sys.executable, "-m", "penstock", "worker-conformance", "--json", *options, "--", *command]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=570)
    documents = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = [document for document in documents if "case" in document]
    assert found, done.stderr[-2000:]
    return found


def faults(*command: str, options: Sequence[str] = ("--short",)) -> dict[str, str]:
    """Return what a worker did wrong, by case."""
    return {
        verdict["case"]: verdict["fault"]
        for verdict in verdicts(*command, options=options)
        if verdict["fault"]
    }
