"""Time limits that tasks and rules of StackStorm give to actions without a file in the pack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.penstock_import.test_reviewed_changes import of_pack, texts

HEAD = {"name": "flow", "entry_point": "workflows/flow.yaml"}


def files(kind: str, ref: str, timeout: Any) -> dict[str, Any]:
    """Return the files of a workflow, or of a rule, that gives an action this timeout."""
    supplied = {"hosts": "web1", "timeout": timeout, "cmd": "true"}
    if kind == "rule":
        action = {"ref": ref, "parameters": supplied}
        rule = {"name": "go", "enabled": True, "trigger": {"type": "other.came"}, "action": action}
        return {"rules/go.yaml": rule}
    flow: dict[str, Any] = {
        "version": 1.0,
        "input": [{"x": 3}],
        "tasks": {"a": {"action": ref, "input": supplied}},
    }
    if kind == "action-chain":
        flow = {"chain": [{"name": "a", "ref": ref, "parameters": supplied}], "vars": {"x": 3}}
    return {"actions/flow.yaml": HEAD | {"runner_type": kind}, "actions/workflows/flow.yaml": flow}


@pytest.mark.parametrize("ref", ["core.remote", "linux.wait_for_ssh"])
@pytest.mark.parametrize("timeout", [5, "5"])
@pytest.mark.parametrize("kind", ["orquesta", "action-chain"])
def test_timeout_of_a_task_of_core_is_that_of_the_task(
    tmp_path: Path, kind: str, timeout: Any, ref: str
) -> None:
    project, report = of_pack(tmp_path, files(kind, ref, timeout))
    task = project.workflows["flow"]["tasks"]["a"]
    assert task["timeout"] == 5
    assert task["input"] == {"cmd": "true", "hosts": "web1"}
    assert "timeout" not in " ".join(texts(report))


@pytest.mark.parametrize(
    ("ref", "limit"),
    [
        ("core.remote", 60),
        ("core.http", 60),
        ("core.sendmail", 60),
        ("core.uuid", 600),
        ("linux.rm", 60),
        ("linux.dig", 600),
        ("linux.wait_for_ssh", 400),
        ("other.thing", None),
    ],
)
def test_action_of_core_has_the_time_of_its_runner(tmp_path: Path, ref: str, limit: int | None) -> None:
    project, _ = of_pack(tmp_path, files("orquesta", ref, 5))
    action = project.actions[ref.replace(".", "_")]
    assert action["timeout"] == limit
    assert action.get("executor") == (None if limit is None else "process")


@pytest.mark.parametrize(("kind", "line"), [("orquesta", 9), ("action-chain", 6)])
def test_timeout_for_another_pack_holds_and_is_named(tmp_path: Path, kind: str, line: int) -> None:
    project, report = of_pack(tmp_path, files(kind, "other.thing", 5))
    task = project.workflows["flow"]["tasks"]["a"]
    assert task["timeout"] == 5
    assert task["input"] == {"cmd": "true", "hosts": "web1", "timeout": 5}
    gap = f"actions/workflows/flow.yaml:{line} the timeout 5 of a, for an action of another pack"
    assert any(text.startswith(gap) for text in texts(report))
    assert report.mapped["workflows"] == 1  # as its action, it is counted by itself
    assert report.found["time limits for other packs"] == 1


@pytest.mark.parametrize("kind", ["orquesta", "action-chain"])
def test_computed_timeout_for_another_pack_is_named(tmp_path: Path, kind: str) -> None:
    timeout = "<% ctx().x %>" if kind == "orquesta" else "{{ x }}"
    project, report = of_pack(tmp_path, files(kind, "other.thing", timeout))
    assert "timeout" not in project.workflows["flow"]["tasks"]["a"]
    assert any("timeout" in text for text in texts(report))


@pytest.mark.parametrize("ref", ["core.remote", "other.thing"])
def test_timeout_of_a_rule_is_named(tmp_path: Path, ref: str) -> None:
    project, report = of_pack(tmp_path, files("rule", ref, 5))
    assert any("the timeout 5 of the action of a rule" in text for text in texts(report))
    assert project.rules["go"]["enabled"] is False
