"""Workflows name what they run by its content, hold no key, and give each job what it needs alone; images take digests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = {path.name: path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml")}
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}")


def workflow(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(WORKFLOWS[name])
    return document


def test_workflow_names_each_action_by_its_commit() -> None:
    uses = [
        step["uses"]
        for name in WORKFLOWS
        for job in workflow(name)["jobs"].values()
        for step in job["steps"]
        if "uses" in step
    ]
    assert len(uses) >= 8
    assert not [name for name in uses if not PINNED.fullmatch(name)]


def test_workflow_holds_no_stored_secret() -> None:
    for name, text in WORKFLOWS.items():
        assert "secrets." not in text, name


def test_release_gives_no_job_more_than_it_needs() -> None:
    release = workflow("release.yml")
    assert release["permissions"] == {}
    rights = {name: job["permissions"] for name, job in release["jobs"].items()}
    signs = {"id-token": "write", "attestations": "write"}
    assert rights["packages"] == {"contents": "write", **signs}
    assert rights["image"] == {"contents": "read", "packages": "write", **signs}


def test_release_attests_files_and_image() -> None:
    release = workflow("release.yml")
    subjects = [
        step["with"].get("subject-path") or step["with"]["subject-digest"]
        for job in release["jobs"].values()
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/attest-build-provenance@")
    ]
    assert subjects == ["dist/*", "${{ steps.build.outputs.digest }}"]
    [build] = [step for step in release["jobs"]["image"]["steps"] if step.get("id") == "build"]
    assert (build["with"]["provenance"], build["with"]["sbom"]) == ("mode=max", True)
    assert build["with"]["build-args"] == "PYTHON_IMAGE=${{ steps.base.outputs.image }}"


def test_dockerfile_takes_a_base_image_by_its_digest() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert [line.split()[1] for line in lines if line.startswith("FROM ")] == ["${PYTHON_IMAGE}"] * 2
    assert "ARG PYTHON_IMAGE=python:3.12-slim" in lines
