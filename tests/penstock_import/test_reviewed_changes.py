"""Changes of meaning that no line named, each with the smallest source that shows it."""

from __future__ import annotations

import contextvars
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from penstock.run.context import CURRENT
from penstock_import.applied import keep_applicable
from penstock_import.celery import CeleryProject
from penstock_import.project import Project
from penstock_import.report import Report
from penstock_import.stackstorm import StackStormPack

APP = "from celery import Celery\napp = Celery('depot')\n"
SHELL = {
    "name": "act",
    "runner_type": "local-shell-cmd",
    "parameters": {"cmd": {"type": "string", "required": True}},
}


def of_pack(folder: Path, files: dict[str, Any]) -> tuple[Project, Report]:
    """Return what is made of the pack `depot` with these files, and the report."""
    for name, content in {"pack.yaml": {"ref": "depot"}, **files}.items():
        (folder / "depot" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "depot" / name).write_text(
            content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
        )
    source = StackStormPack(folder / "depot")
    project = source.mapped()
    keep_applicable(project, source.report)
    return project, source.report


def of_application(folder: Path, files: dict[str, str]) -> tuple[Project, Report]:
    """Return what is made of the application `depot` with these files, and the report."""
    for name, text in files.items():
        (folder / "depot" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "depot" / name).write_text(text)
    source = CeleryProject(folder / "depot")
    project = source.mapped()
    keep_applicable(project, source.report)
    return project, source.report


def texts(report: Report) -> list[str]:
    return [f"{gap.file}:{gap.line} {gap.what} | {gap.by_hand}" for gap in report.gaps]


def named(report: Report, start: str) -> bool:
    return any(text.startswith(start) for text in texts(report))


@pytest.mark.parametrize("command", ["sleep 3000", "trap '' TERM; sleep 3000 & wait; sleep 3000"])
def test_command_ends_with_its_attempt(tmp_path: Path, command: str) -> None:
    """A thread cannot be killed, so the function looks whether its attempt has ended."""
    project, _ = of_pack(tmp_path, {"actions/act.yaml": SHELL})
    module: dict[str, Any] = {}
    exec(project.python(), module)
    run = SimpleNamespace(cancelled=False, items=None)
    begun = tmp_path / "begun"
    errors: list[BaseException] = []

    def act() -> None:
        CURRENT.set(run)  # type: ignore[arg-type]  # only these two are read
        try:
            module["act_"](cmd=f"echo begun; touch {begun}; {command}")
        except module["ActionTimedOut"] as error:
            errors.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(act,), daemon=True)
    thread.start()
    while thread.is_alive() and not begun.exists():
        thread.join(0.01)
    run.cancelled = True
    thread.join(60)
    assert [error.result["stdout"] for error in errors] == ["begun"]  # type: ignore[attr-defined]


def test_time_limit_without_command_ends_a_process(tmp_path: Path) -> None:
    python = {"name": "act", "runner_type": "python-script", "entry_point": "act.py"}
    project, _ = of_pack(tmp_path, {"actions/act.yaml": python})
    assert (project.actions["act"]["timeout"], project.actions["act"]["executor"]) == (600, "process")
    task = "@app.task(time_limit=9)\ndef weigh(): ...\n@app.task\ndef bill(): ...\n"
    project, _ = of_application(tmp_path, {"tasks.py": APP + task})
    assert (project.actions["weigh"]["timeout"], project.actions["weigh"]["executor"]) == (9, "process")
    assert "executor" not in project.actions["bill"]
    project, _ = of_application(tmp_path, {"tasks.py": APP + task + "app.conf.task_time_limit = 5\n"})
    assert (project.actions["bill"]["timeout"], project.actions["bill"]["executor"]) == (5, "process")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("actions", SHELL),
        ("rules", {"name": "act", "trigger": {"type": "depot.seen"}, "action": {"ref": "core.noop"}}),
        ("triggers", {"name": "act"}),
        ("policies", {"name": "act", "policy_type": "action.retry", "resource_ref": "depot.act"}),
        ("aliases", {"name": "act"}),
    ],
)
def test_definition_of_another_pack_is_refused(tmp_path: Path, kind: str, body: dict[str, Any]) -> None:
    project, report = of_pack(tmp_path, {f"{kind}/act.yaml": {"pack": "else", **body}})
    assert named(report, f"{kind}/act.yaml:1 the pack else of act, which lies in the pack depot")
    assert (project.actions, project.rules, project.triggers) == ({}, {}, {})
    assert (report.found[kind], report.mapped[kind]) == (1, 0)


def test_policy_of_what_is_refused_is_named(tmp_path: Path) -> None:
    head = {"name": "flow", "runner_type": "orquesta", "entry_point": "workflows/flow.yaml"}
    flow = {"tasks": {"one": {"action": "depot.act"}}}  # without the parameter that it requires
    policy = {
        "name": "alone",
        "resource_ref": "depot.flow",
        "policy_type": "action.concurrency",
        "parameters": {"threshold": 1},
    }
    files = {
        "actions/act.yaml": SHELL,
        "actions/flow.yaml": head,
        "actions/workflows/flow.yaml": flow,
        "policies/alone.yaml": policy,
    }
    project, report = of_pack(tmp_path, files)
    assert "flow" not in project.workflows
    assert named(report, "policies/alone.yaml:1 the policy alone of flow, which is refused here")
    assert (report.found["policies"], report.mapped["policies"]) == (1, 0)
