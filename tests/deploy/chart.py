"""The chart, rendered by Helm."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.servers import choose

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/penstock"
NEWEST = "1.34"
"""Of Kubernetes."""

Document = dict[str, Any]


def template(*options: str, chart: Path = CHART) -> subprocess.CompletedProcess[str]:
    command = [choose.helm_program(), "template", "penstock", str(chart), "--kube-version", f"{NEWEST}.0"]
    return subprocess.run([*command, *options], capture_output=True, text=True, timeout=60)


def rendered(*options: str, chart: Path = CHART) -> list[Document]:
    """Return the documents that would be applied, with these options of `helm template`."""
    result = template(*options, chart=chart)
    assert result.returncode == 0, result.stderr
    return [document for document in yaml.safe_load_all(result.stdout) if document is not None]


def refused(*options: str) -> str:
    """Return the reason for which Helm refuses these options."""
    result = template(*options)
    assert result.returncode != 0, "nothing was wrong"
    return result.stderr


def of_kind(documents: list[Document], *kinds: str) -> list[Document]:
    return [document for document in documents if document["kind"] in kinds]


def pods(documents: list[Document]) -> list[Document]:
    """The pod of each deployment and job."""
    return [document["spec"]["template"]["spec"] for document in of_kind(documents, "Deployment", "Job")]
