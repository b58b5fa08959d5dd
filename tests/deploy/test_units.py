"""The files of `deploy/` for Kubernetes and systemd are valid there, and name commands, settings and ports that exist."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import typer
import yaml

from penstock.cli import app
from penstock.settings import Settings
from tests.deploy.restricted import violations

ROOT = Path(__file__).parents[2]
BASE = ROOT / "deploy/kubernetes/base"
KEDA = ROOT / "deploy/kubernetes/keda"
UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
OLDEST, NEWEST = "1.29", "1.34"
SERVICES = {"executor", "worker", "api"}


def documents(*folders: Path) -> list[dict[str, Any]]:
    files = [file for folder in folders for file in sorted(folder.glob("*.yaml"))]
    all_documents = [document for file in files for document in yaml.safe_load_all(file.read_text())]
    return [document for document in all_documents if document["kind"] != "Kustomization"]


def pods() -> list[dict[str, Any]]:
    """The pod of each deployment and job."""
    specs = [document.get("spec", {}) for document in documents(BASE)]
    return [spec["template"]["spec"] for spec in specs if "template" in spec]


def commands() -> set[str]:
    return set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_kubernetes_would_take_it(version: str) -> None:
    for document in documents(BASE):
        kubernetes_validate.validate(document, version, strict=True)


def test_every_service_has_a_deployment_with_existing_names() -> None:
    variables = {f"PENSTOCK_{name.upper()}" for name in Settings.model_fields}
    run = set()
    for pod in pods():
        [container] = pod["containers"]
        command, *options = container["args"]
        run.add(command)
        assert command in commands()
        assert options in ([], ["--wait", "60s"])
        assert {entry["name"] for entry in container["env"]} <= variables
    assert run == SERVICES | {"migrate"}
    config = yaml.safe_load((BASE / "kustomization.yaml").read_text())["configMapGenerator"][0]["literals"]
    assert {line.partition("=")[0] for line in config} <= variables


def test_pods_keep_to_the_restricted_standard() -> None:
    assert [violation for pod in pods() for violation in violations(pod)] == []


def test_services_have_longer_to_drain_than_their_grace() -> None:
    grace = Settings.model_fields["grace"].default
    for pod in pods():
        assert pod.get("terminationGracePeriodSeconds", grace + 1) > grace
    [unit] = [read(file) for file in UNITS if "@" in file.name]
    assert int(unit["Service"]["TimeoutStopSec"]) > grace


def read(unit: Path) -> RawConfigParser:
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(unit.read_text())
    return parser


def test_units_start_existing_commands() -> None:
    for file in UNITS:
        program, command = shlex.split(read(file)["Service"]["ExecStart"])
        assert program.endswith("/penstock")
        assert command in (commands() if command != "%i" else {"%i"})


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not on this machine")
def test_systemd_would_take_them(tmp_path: Path) -> None:
    copies: list[Path] = []
    for file in UNITS:
        copy = tmp_path / file.name.replace("@.", "@executor.")
        copy.write_text(
            file.read_text().replace("/opt/penstock/bin/penstock", shutil.which("true") or "true")
        )
        copies.append(copy)
    verify = ["systemd-analyze", "verify", "--man=no", *map(str, copies)]
    result = subprocess.run(verify, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on this machine")
@pytest.mark.parametrize("folder", [BASE, KEDA])
def test_kustomize_puts_it_together(folder: Path) -> None:
    result = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    resources = {
        (resource["kind"], resource["metadata"]["name"]): resource
        for resource in yaml.safe_load_all(result.stdout)
    }
    workers = resources["Deployment", "penstock-worker"]["spec"]
    assert ("replicas" in workers) == (folder == BASE), "who scales workers says how many there are"
    for resource in resources.values():
        pod = resource.get("spec", {}).get("template")
        assert pod is None or pod["metadata"]["labels"]["app.kubernetes.io/part-of"] == "penstock"
