"""The chart as it comes, and the kustomize base, run the same. (Labels, names and tags are each one's own.)"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from penstock.settings import Settings
from tests.deploy.chart import Document, of_kind, rendered

ROLES = [
    word
    for service in ("executor", "worker", "api")
    for word in ("--set", f"secret.services.{service}=penstock-{service}")
]
"""The base has a secret for each service, with the address for its role; the chart only where it is told so."""

BASE = Path(__file__).parents[2] / "deploy/kubernetes/base"
KEDA = Path(__file__).parents[2] / "deploy/kubernetes/keda/workers.yaml"
PARTS = ("executor", "worker", "api", "migrate")
DEFAULTS = {
    f"PENSTOCK_{name.upper()}": str(field.get_default(call_default_factory=True)).removesuffix(".0")
    for name, field in Settings.model_fields.items()
}


def base() -> list[Document]:
    """Return the documents of the base, and their form after kustomize."""
    files = [file for file in sorted(BASE.glob("*.yaml")) if file.stem != "kustomization"]
    literals = yaml.safe_load((BASE / "kustomization.yaml").read_text())["configMapGenerator"][0]["literals"]
    settings = {"kind": "ConfigMap", "data": dict(line.split("=", 1) for line in literals)}
    return [settings, *(document for file in files for document in yaml.safe_load_all(file.read_text()))]


def part(document: Document) -> str:
    """Return the part of PARTS by the name of an object, or an empty text for all."""
    name = document["metadata"]["name"].split("-")
    return next((part_name for part_name in PARTS if part_name in name), "")


def what_matters(documents: list[Document]) -> dict[tuple[str, str], Any]:
    [settings] = [document["data"] for document in of_kind(documents, "ConfigMap")]
    specs: dict[tuple[str, str], Any] = {}
    for document in of_kind(documents, "Deployment", "Job"):
        pod = document["spec"]["template"]["spec"]
        [container] = pod["containers"]
        container["env"] = environment(container, settings)
        container["image"] = container["image"].partition(":")[0]
        for spread in pod.get("topologySpreadConstraints", []):
            del spread["labelSelector"]
        specs[document["kind"], part(document)] = {
            **{name: document["spec"].get(name) for name in ("replicas", "strategy", "backoffLimit")},
            "container": without(container, "name", "envFrom", "imagePullPolicy"),
            "pod": without(pod, "containers", "serviceAccountName", "automountServiceAccountToken"),
            "annotations": without(
                document["spec"]["template"]["metadata"].get("annotations", {}), "checksum/settings"
            ),
        }
    for document in of_kind(documents, "PodDisruptionBudget", "Service", "NetworkPolicy"):
        specs[document["kind"], part(document)] = without(document["spec"], "selector", "podSelector", "type")
    return specs


def environment(container: Document, settings: dict[str, str]) -> dict[str, Any]:
    """By name; what only says the default is left out."""
    shared = settings if container.get("envFrom") else {}
    own = {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}
    return {name: value for name, value in {**shared, **own}.items() if DEFAULTS.get(name) != value}


def without(of: Document, *names: str) -> Document:
    return {name: value for name, value in of.items() if name not in names}


def test_they_run_the_same() -> None:
    ours, theirs = what_matters(rendered(*ROLES)), what_matters(base())
    assert {kind for kind, _ in ours} == {
        "Deployment",
        "Job",
        "PodDisruptionBudget",
        "Service",
        "NetworkPolicy",
    }
    assert ours == theirs


def test_they_scale_workers_alike() -> None:
    [ours] = of_kind(rendered("--set", "workers.default.scale.by=work"), "ScaledObject")
    theirs = yaml.safe_load(KEDA.read_text())
    assert without(ours["spec"], "scaleTargetRef") == without(theirs["spec"], "scaleTargetRef")
