"""Actions of StackStorm that are not run as they are: disabled ones, and workflows without a file. What a caller may give, what
is a secret and how long a run may take are those of the action. The oracle is what is made of the same action when it is
enabled."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.penstock_import.test_accounting import CASES
from tests.penstock_import.test_reviewed_changes import CHAIN, of_pack, texts

PARAMETERS: dict[str, Any] = {
    "token": {"type": "string", "secret": True, "required": True},
    "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
    "port": {"type": "integer", "default": 22, "immutable": True},
}
SCRIPT = {"name": "p1", "runner_type": "python-script", "entry_point": "p1.py", "parameters": PARAMETERS}
FLOW = {"tasks": {"one": {"action": "core.noop"}}}


def test_disabled_action_keeps_its_schema(tmp_path: Path) -> None:
    project, report = of_pack(tmp_path, {"actions/p1.yaml": SCRIPT | {"enabled": False}})
    action = project.actions["p1"]
    assert (action["timeout"], action["executor"]) == (600, "process")
    assert action["parameters"]["token"] == {"type": "string", "secret": True, "required": True}
    assert action["parameters"]["colour"]["enum"][:2] == ["red", "blue"]
    assert "port" not in action["parameters"]  # its function fills it in
    assert any("action p1 is disabled" in text for text in texts(report))
    assert report.mapped["actions"] == 0


def kept(folder: Path, action: dict[str, Any]) -> dict[str, Any]:
    files = {"actions/p1.yaml": action}
    if action["runner_type"] == "orquesta":
        files["actions/workflows/p1.yaml"] = FLOW
    project, _ = of_pack(folder, files)
    target = project.actions.get("p1") or project.workflows["p1"]
    if (
        action["runner_type"] == "orquesta"
    ):  # the function of the action fills in null, where a workflow names it
        return {name: _without_null(about) for name, about in target.get("parameters", {}).items()}
    keys = ("parameters", "timeout", "executor", "on_worker_loss", "description")
    return {key: target.get(key) for key in keys}


def _without_null(about: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in about.items() if (key, value) != ("default", None)}


def random_parameter(rng: random.Random) -> dict[str, Any]:
    kind, default = rng.choice(
        [("string", "a"), ("integer", 3), ("boolean", True), ("array", [1]), ("object", {"a": 1})]
    )
    about: dict[str, Any] = {"type": kind, "description": "x"}
    about |= {"default": default} if rng.random() < 0.5 else {}
    about |= {"secret": True} if rng.random() < 0.3 else {}
    about |= {"required": True} if rng.random() < 0.3 else {}
    about |= {"immutable": True} if rng.random() < 0.2 and "default" in about else {}
    about |= (
        {"enum": [default, *([9] if kind == "integer" else ["b"])]} if kind in ("string", "integer") else {}
    )
    return about


def test_random_disabled_action_equals_the_enabled_one(tmp_path: Path) -> None:
    rng = random.Random(5)
    for case in range(CASES):
        runner = rng.choice(["python-script", "http-request", "remote-shell-cmd", "winrm-cmd", "orquesta"])
        names = rng.sample(["one", "two", "three", "timeout", "env", "url", "sudo"], rng.randint(0, 4))
        parameters = {name: random_parameter(rng) for name in names}
        if "timeout" in parameters:
            parameters["timeout"] = {"type": "integer", "default": rng.randint(1, 90)}
        action = {"name": "p1", "runner_type": runner, "description": "d", "parameters": parameters}
        action["entry_point"] = "workflows/p1.yaml" if runner == "orquesta" else "p1.py"
        enabled = kept(tmp_path / f"enabled{case}", action)
        disabled = kept(tmp_path / f"disabled{case}", action | {"enabled": False})
        assert disabled == enabled, (case, action)


@pytest.mark.parametrize("text", [None, "tasks: [}\n"])
def test_workflow_without_its_file_keeps_its_parameters(tmp_path: Path, text: str | None) -> None:
    head = CHAIN | {"runner_type": "orquesta", "parameters": PARAMETERS}
    files: dict[str, Any] = {"actions/flow.yaml": head}
    if text is not None:
        files["actions/workflows/flow.yaml"] = text
    project, _ = of_pack(tmp_path, files)
    parameters = project.actions["flow"]["parameters"]
    assert parameters["token"]["secret"] is True
    assert parameters["port"]["const"] == 22


@pytest.mark.parametrize(
    "about",
    [
        {"type": "string", "default": "{{ st2kv.system.token }}", "immutable": True},
        {"type": "string", "default": "{{ st2kv.system.token }}"},
        {"type": "string", "default": "{{ colour }}"},
    ],
)
def test_computed_default_of_a_disabled_workflow_is_named(tmp_path: Path, about: dict[str, Any]) -> None:
    parameters = PARAMETERS | {"key": about}
    head = CHAIN | {"runner_type": "orquesta", "parameters": parameters, "enabled": False}
    _, report = of_pack(tmp_path, {"actions/flow.yaml": head, "actions/workflows/flow.yaml": FLOW})
    assert any("the default of key of action flow" in text for text in texts(report)), texts(report)


SENSOR: dict[str, Any] = {
    "class_name": "S",
    "entry_point": "s.py",
    "poll_interval": 30,
    "trigger_types": [{"name": "t"}],
}
POLICY: dict[str, Any] = {"name": "p2", "policy_type": "action.concurrency", "resource_ref": "depot.p1"}
SHELL: dict[str, Any] = {
    "name": "p1",
    "runner_type": "local-shell-cmd",
    "parameters": {"cmd": {"default": "echo 1"}},
}
RULE: dict[str, Any] = {"name": "r", "trigger": {"type": "depot.t"}, "action": {"ref": "depot.p1"}}


@pytest.mark.parametrize("value", ["false", "no", 0, 1, "true", None])
def test_value_that_is_no_truth_value_disables_and_is_named(tmp_path: Path, value: Any) -> None:
    files = {
        "actions/p1.yaml": SHELL | {"enabled": value},
        "actions/w.yaml": {
            **SHELL,
            "name": "w",
            "runner_type": "orquesta",
            "entry_point": "w.yaml",
            "enabled": value,
        },
        "policies/p2.yaml": POLICY | {"parameters": {"threshold": 2}, "enabled": value},
        "sensors/s.yaml": SENSOR | {"enabled": value},
        "rules/r.yaml": RULE | {"enabled": value},
    }
    project, report = of_pack(tmp_path, files)
    lines = [line for line in texts(report) if f"{value!r}, which is neither true nor false" in line]
    assert [line.partition(":")[0] for line in lines] == [
        "sensors/s.yaml", "actions/p1.yaml", "actions/w.yaml", "rules/r.yaml", "policies/p2.yaml",
    ]  # fmt: skip
    assert "limits" not in project.actions["p1"]
    assert "poll" not in project.triggers["t"]
    assert project.rules["r"]["enabled"] is False
    assert "w" in project.actions
    assert report.mapped["actions"] == report.mapped["policies"] == report.mapped["rules"] == 0


def test_definitions_without_the_key_have_the_defaults_of_stackstorm(tmp_path: Path) -> None:
    files = {
        "actions/p1.yaml": SHELL,
        "policies/p2.yaml": POLICY | {"parameters": {"threshold": 2}},
        "sensors/s.yaml": SENSOR,
        "rules/r.yaml": RULE,
    }
    project, report = of_pack(tmp_path, files)
    assert project.actions["p1"]["limits"] == [{"max": 2}]
    assert project.triggers["t"]["poll"]["every"] == 30
    assert project.rules["r"]["enabled"] is False
    assert not any("neither true nor false" in line for line in texts(report))


@pytest.mark.parametrize(
    ("first", "second", "line"),
    [
        ({"poll_interval": 9}, {"enabled": False}, ""),
        ({"poll_interval": 9}, {}, ""),
        ({"poll_interval": 9}, {"poll_interval": 9}, "a second sensor polls for"),
    ],
)
def test_sensors_with_one_trigger_keep_its_poll(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], line: str
) -> None:
    """StackStorm registers a trigger that two sensors declare alike once, and the sensor that is started sends its events."""
    types = [{"name": "arrived", "payload_schema": {"type": "object"}}]
    project, report = of_pack(
        tmp_path,
        {
            f"sensors/{name}.yaml": {"class_name": name, "entry_point": f"{name}.py", "trigger_types": types}
            | more
            for name, more in (("one", first), ("two", second))
        },
    )
    assert project.triggers["arrived"]["poll"]["every"] == 9
    assert not any("two triggers become" in text for text in texts(report)), texts(report)
    assert bool(line) == any(line in text for text in texts(report) if line), texts(report)


@pytest.mark.parametrize(
    "name", ["rules/hooks/r.yaml", "rules/r.json", "sensors/a/b/s.yml", "policies/old/p.yaml"]
)
def test_definition_that_stackstorm_does_not_register_is_named(tmp_path: Path, name: str) -> None:
    project, report = of_pack(tmp_path, {"rules/r.yaml": RULE, name: RULE})
    assert len(project.rules) == 1
    assert [gap.file for gap in report.gaps if gap.what == f"{gap.file} is not read"] == [name]
