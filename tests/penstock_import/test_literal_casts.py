"""A literal text for a parameter has the type that the action declares: in tasks, in action chains, in rules and timers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock_import.applied import keep_applicable
from penstock_import.project import Project
from penstock_import.report import Report
from penstock_import.stackstorm import StackStormPack

SAY = {
    "name": "say",
    "runner_type": "local-shell-cmd",
    "parameters": {
        "n": {"type": "integer"},
        "cmd": {"type": "string", "default": "echo {{ n }}", "immutable": True},
    },
}


def imported(folder: Path, files: dict[str, Any]) -> tuple[Project, Report]:
    for name, content in {"pack.yaml": {"ref": "depot"}, "actions/say.yaml": SAY, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(yaml.safe_dump(content, sort_keys=False))
    source = StackStormPack(folder)
    project = source.mapped()
    keep_applicable(project, source.report)
    return project, source.report


def flow(runner: str, body: dict[str, Any]) -> dict[str, Any]:
    head = {"name": "flow", "runner_type": runner, "entry_point": "flows/flow.yaml"}
    return {"actions/flow.yaml": head, "actions/flows/flow.yaml": body}


@pytest.mark.parametrize(
    "files",
    [
        flow("orquesta", {"tasks": {"one": {"action": "depot.say", "input": {"n": "4"}}}}),
        flow("orquesta", {"tasks": {"one": {"action": "depot.say n='4'"}}}),
        flow("action-chain", {"chain": [{"name": "one", "ref": "depot.say", "parameters": {"n": "4"}}]}),
    ],
)
def test_text_of_a_task_has_the_type_of_its_parameter(tmp_path: Path, files: dict[str, Any]) -> None:
    project, _ = imported(tmp_path, files)
    (task,) = project.workflows["flow"]["tasks"].values()
    assert task["input"] == {"n": 4}


def test_text_that_stackstorm_refuses_is_a_gap_of_a_task(tmp_path: Path) -> None:
    project, report = imported(
        tmp_path, flow("orquesta", {"tasks": {"one": {"action": "depot.say", "input": {"n": "four"}}}})
    )
    assert project.workflows["flow"]["tasks"]["one"]["input"] == {"n": "{{ none.to_do }}"}
    assert [gap for gap in report.gaps if "does not convert to the type integer" in gap.what]


def test_text_of_a_timer_has_the_type_of_its_parameter(tmp_path: Path) -> None:
    trigger = {"type": "core.st2.IntervalTimer", "parameters": {"unit": "seconds", "delta": 5}}
    action = {"ref": "depot.say", "parameters": {"n": "4"}}
    rule = {"name": "often", "enabled": True, "trigger": trigger, "action": action}
    project, report = imported(tmp_path, {"rules/often.yaml": rule})
    assert project.schedules == {"often": {"action": "depot.say", "every": 5, "params": {"n": 4}}}
    assert report.mapped["schedules"] == 1
