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
from tests.penstock_import.test_reviewed_changes import of_pack, texts

SAY = {
    "name": "say",
    "runner_type": "local-shell-cmd",
    "parameters": {
        "n": {"type": "integer"},
        "cmd": {"type": "string", "default": "echo {{ n }}", "immutable": True},
    },
}


def imported(folder: Path, files: dict[str, Any]) -> tuple[Project, Report]:
    for name, content in {
        "pack.yaml": {
            "ref": "depot",
            "name": "depot",
            "description": "Pens.",
            "version": "1.0.0",
            "author": "Pat",
        },
        "actions/say.yaml": SAY,
        **files,
    }.items():
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
    assert project.schedules["often"]["params"] == {"n": 4}
    assert report.mapped["schedules"] == 1


TEXTS = {"a": "1", "b": "true", "c": "[1]", "d": "a 1", "e": "yes", "timeout_text": "4.5"}
OF_KNOWN_ACTION = {"name": "act", "runner_type": "python-script", "parameters": dict.fromkeys(TEXTS)}


@pytest.mark.parametrize("kind", ["rule", "action-chain", "orquesta"])
@pytest.mark.parametrize("ref", ["other.act", "depot.act"])
def test_text_for_a_parameter_of_an_unknown_type_is_named(tmp_path: Path, kind: str, ref: str) -> None:
    """StackStorm turns it into the type that the action declares, which no file of the pack has for another pack."""
    files: dict[str, Any] = {"actions/act.yaml": OF_KNOWN_ACTION, "triggers/t.yaml": {"name": "t"}}
    if kind == "rule":
        action = {"ref": ref, "parameters": TEXTS}
        files["rules/r.yaml"] = {"name": "r", "trigger": {"type": "depot.t"}, "action": action}
    else:
        files["actions/flow.yaml"] = {
            "name": "flow",
            "runner_type": kind,
            "entry_point": "workflows/flow.yaml",
        }
        chain = {"chain": [{"name": "one", "ref": ref, "parameters": TEXTS}]}
        tasks = {"tasks": {"one": {"action": ref, "input": TEXTS}}}
        files["actions/workflows/flow.yaml"] = chain if kind == "action-chain" else tasks
    _, report = of_pack(tmp_path, files)
    told = {
        gap.what.split(",")[0].split()[-1]
        for gap in report.gaps
        if "In Penstock it stays a text" in gap.by_hand
    }
    assert told == ({"a", "b", "c", "timeout_text"} if ref == "other.act" else set()), texts(report)


@pytest.mark.parametrize("runner", ["orquesta", "action-chain", "mistral-v2", "python-script"])
def test_definition_of_another_pack_is_counted_by_its_kind(tmp_path: Path, runner: str) -> None:
    """StackStorm registers no such definition. It is found, and not mapped."""
    files = {
        "actions/act.yaml": {"name": "act", "pack": "other", "runner_type": runner, "entry_point": "x"},
        "rules/r.yaml": {"name": "r", "pack": "other", "trigger": {"type": "core.st2.CronTimer"}},
    }
    _, report = of_pack(tmp_path, files)
    kind = "actions" if runner == "python-script" else "workflows"
    assert (report.found[kind], report.found["schedules"]) == (1, 1)
    assert (report.found["rules"], sum(report.mapped.values())) == (0, 0)
