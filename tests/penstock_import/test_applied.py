"""A fault that lint finds in an imported project is a gap at the place in the source."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.language.loading.lint import check, lint
from penstock_import.applied import keep_applicable
from penstock_import.attune import AttunePack
from penstock_import.celery import CeleryProject
from penstock_import.stackstorm import StackStormPack

STACKSTORM = {
    "pack.yaml": "name: depot\n",
    "actions/weigh.yaml": "name: weigh\nrunner_type: local-shell-cmd\nparameters: {crate: {type: string, required: true}}\n",
    "triggers/arrived.yaml": "name: arrived\n",
    "rules/r.yaml": "---\nname: heavy\ntrigger: {type: depot.arrived}\naction: {ref: depot.weigh}\n",
}
ATTUNE = {
    "pack.yaml": "ref: depot\nlabel: Depot\n",
    "actions/weigh.yaml": "ref: depot.weigh\nlabel: Weigh\nrunner_type: shell\nentry_point: weigh.sh\n"
    "parameters: {crate: {type: string, required: true}}\n",
    "actions/weigh.sh": "cat\n",
    "triggers/arrived.yaml": "ref: depot.arrived\nlabel: Arrived\n",
    "rules/r.yaml": "ref: depot.heavy\nlabel: Heavy\ntrigger_ref: depot.arrived\naction_ref: depot.weigh\n",
}
CELERY = {
    "tasks.py": "from celery import Celery\napp = Celery('depot')\n@app.task\ndef weigh(crate): ...\n"
    "app.conf.beat_schedule = {\n    'heavy': {'task': 'depot.tasks.weigh', 'schedule': 60.0},\n}\n",
    "__init__.py": "",
}


@pytest.mark.parametrize(
    ("files", "importer", "place"),
    [
        (STACKSTORM, StackStormPack, "rules/r.yaml:1"),
        (ATTUNE, AttunePack, "rules/r.yaml:1"),
        (CELERY, CeleryProject, "tasks.py:6"),
    ],
    ids=["stackstorm", "attune", "celery"],
)
def test_refused_definition_is_named_at_its_source(
    tmp_path: Path, files: dict[str, str], importer: Any, place: str
) -> None:
    for name, text in files.items():
        (tmp_path / "depot" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "depot" / name).write_text(text)
    source = importer(tmp_path / "depot")
    keep_applicable(source.mapped(), source.report)
    gaps = [gap for gap in source.report.gaps if "heavy is refused" in gap.what]
    assert {f"{gap.file}:{gap.line}" for gap in gaps} == {place}, gaps


def test_many_definitions_with_the_same_fault_are_each_refused(tmp_path: Path) -> None:
    files = {name: text for name, text in STACKSTORM.items() if name != "rules/r.yaml"}
    files |= {f"rules/r{n}.yaml": STACKSTORM["rules/r.yaml"].replace("heavy", f"heavy_{n}") for n in range(9)}
    for name, text in files.items():
        (tmp_path / "depot" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "depot" / name).write_text(text)
    source = StackStormPack(tmp_path / "depot")
    project = source.mapped()
    keep_applicable(project, source.report)
    assert (source.report.mapped["rules"], source.report.applied["rules"]) == (0, 0)
    named = {gap.file for gap in source.report.gaps if "is refused" in gap.what}
    assert named == {f"rules/r{n}.yaml" for n in range(9)}
    project.write(tmp_path / "ours", "", source.report)
    assert not check(lint(str(tmp_path / "ours"))[0], ())


def test_refused_limit_is_a_gap_of_its_policy(tmp_path: Path) -> None:
    """A limit that lint refuses must not keep the rest of the pack from being applied."""
    policy = "ref: depot.few\naction_ref: depot.weigh\nconcurrency: {limit: 1, method: enqueue, parameters: [crate]}\n"
    secret = ATTUNE["actions/weigh.yaml"].replace("required: true", "required: true, secret: true")
    for name, text in (ATTUNE | {"actions/weigh.yaml": secret, "policies/few.yaml": policy}).items():
        (tmp_path / "depot" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "depot" / name).write_text(text)
    source = AttunePack(tmp_path / "depot")
    project = source.mapped()
    keep_applicable(project, source.report)
    texts = [f"{gap.file}:{gap.line} {gap.what}" for gap in source.report.gaps]
    assert any(text.startswith("policies/few.yaml:1 limit few is refused by Penstock") for text in texts), (
        texts
    )
    assert (project.limits, source.report.mapped["policies"]) == ({}, 0)
    assert source.report.applied["actions"] == 1


def test_check_leaves_no_folder_for_imports_behind(tmp_path: Path) -> None:
    before = list(sys.path)
    for name, text in STACKSTORM.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    pack = StackStormPack(tmp_path)
    keep_applicable(pack.mapped(), pack.report)
    assert sys.path == before
