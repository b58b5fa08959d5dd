"""The models of KEDA and the Prometheus operator, made from their definitions, that tell whether they would take a resource."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.servers.errors import NoServer

PINNED = Path(__file__).with_suffix(".txt")
KEPT = Path(sys.prefix) / "share" / "penstock-tests" / "custom-resources"
# What a model does not know of, it leaves out; what has another type, it turns into that: so either differs from what was given.
READS = """
import json, sys
from cloudcoil.models.keda.v1alpha1 import ScaledObject
from cloudcoil.models.prometheus_operator.v1 import PodMonitor, PrometheusRule
models = {model.__name__: model for model in (ScaledObject, PodMonitor, PrometheusRule)}
for given in json.load(sys.stdin):
    try:
        read = models[given["kind"]].model_validate(given)
        print(json.dumps(read.model_dump(by_alias=True, exclude_unset=True, mode="json")))
    except ValueError as error:
        print(json.dumps({"error": str(error)}))
"""


def as_read(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each as its definition has it: itself, if nothing is wrong with it."""
    result = subprocess.run(
        [sys.executable, "-c", READS],
        input=json.dumps(documents),
        env={**os.environ, "PYTHONPATH": str(_models())},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def _models() -> Path:
    """Installed once for this environment. Raises NoServer with pip's last words."""
    cache = KEPT / hashlib.sha256(PINNED.read_bytes()).hexdigest()[:16]
    if not cache.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=KEPT) as folder:
            install = [
                "install",
                "-q",
                "--no-deps",
                "--require-hashes",
                "-r",
                str(PINNED),
                "--target",
                folder + "/new",
            ]
            result = subprocess.run(
                [sys.executable, "-m", "pip", *install], capture_output=True, text=True, timeout=300
            )
            if result.returncode != 0:
                raise NoServer(f"pip {' '.join(install)} failed:\n{result.stderr[-1500:]}")
            if not cache.exists():  # others may be at it
                os.rename(folder + "/new", cache)
    return cache
