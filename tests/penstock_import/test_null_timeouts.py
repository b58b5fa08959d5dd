"""A null time limit of a task: StackStorm gives a null parameter its default, that of the action or of its runner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.language.expressions import compile_template
from tests.penstock_import.test_reviewed_changes import of_pack, texts

OWN: dict[str, Any] = {
    "name": "act",
    "runner_type": "local-shell-cmd",
    "parameters": {"cmd": {"default": "true"}, "timeout": {"type": "integer", "default": 7}},
}
PYTHON: dict[str, Any] = {"name": "code", "runner_type": "python-script", "entry_point": "code.py"}
LIMIT = {"limit": {"type": "integer"}}


def task_of(folder: Path, runner: str, ref: str, timeout: Any, declared: Any) -> tuple[Any, list[str]]:
    """Return the task of a workflow that gives an action this timeout, and the lines of the report."""
    head: dict[str, Any] = {"name": "flow", "runner_type": runner, "entry_point": "workflows/flow.yaml"}
    head |= {"parameters": declared}
    supplied = {"timeout": timeout} | ({"cmd": "true"} if ref.startswith("core.") else {})
    supplied |= {"hosts": "web1"} if ref == "core.remote" else {}
    flow: dict[str, Any] = {
        "version": 1.0,
        "input": ["limit"],
        "tasks": {"a": {"action": ref, "input": supplied}},
    }
    if runner == "mistral-v2":
        flow = {
            "version": "2.0",
            "depot.flow": {
                "type": "direct",
                "input": ["limit"],
                "tasks": {"a": {"action": ref, "input": supplied}},
            },
        }
    if runner == "action-chain":
        flow = {"chain": [{"name": "a", "ref": ref, "parameters": supplied}]}
    files = {
        "actions/flow.yaml": head,
        "actions/act.yaml": OWN,
        "actions/code.yaml": PYTHON,
        "actions/code.py": "",
        "actions/workflows/flow.yaml": flow,
    }
    project, report = of_pack(folder, files)
    assert "flow" in project.workflows, texts(report)
    return project.workflows["flow"]["tasks"]["a"], [text for text in texts(report) if "flow.yaml" in text]


@pytest.mark.parametrize("ref", ["core.local", "depot.act", "depot.code", "core.remote"])
@pytest.mark.parametrize("runner", ["orquesta", "mistral-v2", "action-chain"])
def test_null_timeout_leaves_the_time_of_the_action(tmp_path: Path, runner: str, ref: str) -> None:
    task, lines = task_of(tmp_path, runner, ref, None, LIMIT)
    assert "timeout" not in task
    assert "timeout" not in task.get("input", {})
    assert not [text for text in lines if "timeout" in text]


@pytest.mark.parametrize(("ref", "limit"), [("core.local", 60), ("depot.act", 7)])
@pytest.mark.parametrize(
    ("runner", "timeout", "declared"),
    [
        ("orquesta", "<% ctx().limit %>", LIMIT),
        ("orquesta", "<% ctx().limit %>", {}),
        ("orquesta", "{{ ctx().limit }}", LIMIT),
        ("mistral-v2", "<% $.limit %>", LIMIT),
    ],
)
def test_computed_timeout_that_is_null_becomes_the_default(
    tmp_path: Path, runner: str, timeout: str, declared: Any, ref: str, limit: int
) -> None:
    task, _ = task_of(tmp_path, runner, ref, timeout, declared)
    assert task["timeout"] is None
    value = compile_template(task["input"]["timeout"])
    assert value({"context": {"limit": None}, "parameters": {"limit": None}}) == limit
    assert value({"context": {"limit": 3}, "parameters": {"limit": 3}}) == 3


@pytest.mark.parametrize("is_computed", [False, True])
def test_line_of_a_declared_timeout_says_which_call_is_refused(tmp_path: Path, is_computed: bool) -> None:
    project, report = of_pack(
        tmp_path,
        {
            "actions/act.yaml": OWN,
            "actions/flow.yaml": {
                "name": "flow",
                "runner_type": "orquesta",
                "entry_point": "flow/flow.yaml",
                "parameters": LIMIT,
            },
            "actions/flow/flow.yaml": {
                "version": 1.0,
                "input": ["limit"],
                "tasks": {
                    "a": {
                        "action": "depot.act",
                        "input": {"timeout": "<% ctx().limit %>" if is_computed else 3},
                    }
                },
            },
        },
    )
    assert ("timeout" in project.actions["act"]["parameters"]) is is_computed
    assert any(
        "the parameter is refused, unless a task of the pack computes it" in text for text in texts(report)
    )
