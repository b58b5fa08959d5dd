"""Fields of objects in StackStorm's schemas: what StackStorm accepts, the schema here accepts, and nothing else."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from penstock.language.schemas.secrets import masked
from penstock.language.terms.redaction import MASK
from penstock_import.nested_fields import defaults_within, json_schema
from penstock_import.stackstorm import StackStormPack

CASES = 2000
VALUES: list[Any] = ["x", 3, True, None]
FITS = {"string": str, "integer": int, "boolean": bool}


def accepts(value: Any, about: dict[str, Any]) -> bool:
    """Return whether StackStorm accepts a value: it adds defaults, lets optional fields be null, and then looks for each
    field that says that it is required."""
    kind = about.get("type")
    if kind == "object" and "properties" in about:
        if not isinstance(value, dict):
            return False
        for name, field in about["properties"].items():
            inner = value.get(name)
            if inner is None and field.get("default") is not None:
                continue
            if name not in value or inner is None:
                if field.get("required"):
                    return False
            elif not accepts(inner, field):
                return False
        return True
    if kind in FITS:
        return isinstance(value, FITS[kind]) and (kind == "boolean" or not isinstance(value, bool))
    return True


def chance_schema(dice: random.Random, depth: int) -> dict[str, Any]:
    if depth and dice.random() < 0.6:
        fields = {
            name: chance_schema(dice, depth - 1)
            for name in dice.sample(["a", "b", "required", "properties"], 2)
        }
        about: dict[str, Any] = {"type": "object", "properties": fields}
    else:
        about = {"type": dice.choice(list(FITS))}
        if dice.random() < 0.3:
            about["default"] = {"string": "d", "integer": 7, "boolean": False}[about["type"]]
    if dice.random() < 0.6:
        about["required"] = dice.choice([True, False])
    return about


def chance_value(dice: random.Random, about: dict[str, Any]) -> Any:
    if "properties" not in about or dice.random() < 0.1:
        return dice.choice(VALUES)
    fields = about["properties"].items()
    return {name: chance_value(dice, field) for name, field in fields if dice.random() < 0.75}


def test_mapped_schema_agrees_with_stackstorm() -> None:
    dice = random.Random(1)
    accepted = 0
    for _ in range(CASES):
        fields = {name: chance_schema(dice, 2) for name in ("a", "b")}
        about = {"type": "object", "properties": fields}
        value = chance_value(dice, about)
        if not isinstance(value, dict):
            continue
        wanted = accepts(value, about)
        accepted += wanted
        assert jsonschema.Draft202012Validator(json_schema(about)).is_valid(value) == wanted, (about, value)
    assert CASES / 20 < accepted < CASES * 19 / 20


def imported(folder: Path, files: dict[str, Any]) -> tuple[Any, set[str]]:
    files = {
        "pack.yaml": {
            "ref": "depot",
            "name": "depot",
            "description": "Pens.",
            "version": "1.0.0",
            "author": "Pat",
        },
        **files,
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(yaml.safe_dump(content, sort_keys=False))
    pack = StackStormPack(folder)
    project = pack.mapped()
    return project, {f"{gap.file}:{gap.line} {gap.what}" for gap in pack.report.gaps}


FIELDS = {
    "crate": {"type": "string", "required": True},
    "note": {"type": "string"},
    "place": {"type": "object", "properties": {"row": {"type": "integer", "required": True}}},
}


def test_trigger_requires_the_fields_that_say_so(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": FIELDS | {"at": {"type": "string", "default": "now", "required": True}},
    }
    project, gaps = imported(tmp_path, {"triggers/t.yaml": {"name": "arrived", "payload_schema": schema}})
    mapped = project.triggers["arrived"]["schema"]
    assert mapped["required"] == ["crate"]
    assert mapped["properties"]["note"]["type"] == ["string", "null"]
    assert mapped["properties"]["place"]["required"] == ["row"]
    assert gaps == set()


@pytest.mark.parametrize("is_required", [True, False])
def test_parameter_requires_the_fields_that_say_so(tmp_path: Path, is_required: bool) -> None:
    about = {"type": "object", "required": is_required, "properties": FIELDS}
    action = {"name": "weigh", "runner_type": "local-shell-cmd", "parameters": {"load": about}}
    project, _ = imported(tmp_path, {"actions/weigh.yaml": action})
    mapped = project.actions["weigh"]["parameters"]["load"]
    if is_required:
        assert mapped["required"] is True
        assert mapped["allOf"] == [{"required": ["crate"]}]
    else:
        assert mapped["required"] == ["crate"]
        assert mapped["type"] == ["object", "null"]


def test_default_of_a_field_is_named(tmp_path: Path) -> None:
    about = {"type": "object", "properties": {"row": {"type": "integer", "default": 3}}}
    action = {"name": "weigh", "runner_type": "local-shell-cmd", "parameters": {"load": about}}
    _, gaps = imported(tmp_path, {"actions/weigh.yaml": action})
    assert "actions/weigh.yaml:6 the default of row, a field of parameter load" in gaps


def test_defaults_are_found_at_any_depth() -> None:
    row = {"type": "object", "properties": {"default": {"type": "string", "default": "x"}}}
    schema = {"type": "array", "items": {"properties": {"rows": {"type": "array", "items": row}}}}
    assert list(defaults_within(schema)) == ["default"]


def test_data_within_a_schema_is_kept(tmp_path: Path) -> None:
    about = {"type": "object", "default": {"required": True, "position": 3}}
    action = {"name": "weigh", "runner_type": "local-shell-cmd", "parameters": {"load": about}}
    project, _ = imported(tmp_path, {"actions/weigh.yaml": action})
    assert project.actions["weigh"]["parameters"]["load"]["default"] == {"required": True, "position": 3}


LOGIN = {
    "type": "object",
    "properties": {
        "user": {"type": "string"},
        "password": {"type": "string", "secret": True},
        "secret": {"type": "string", "secret": False},
        "keys": {
            "type": "array",
            "items": {"type": "object", "properties": {"key": {"type": "string", "secret": True}}},
        },
    },
}
LOGINS = {"type": "array", "items": LOGIN}
VALUE = {"user": "ann", "password": "p1", "secret": "no", "keys": [{"key": "k1"}]}
SHOWN = {"user": "ann", "password": MASK, "secret": "no", "keys": [{"key": MASK}]}


@pytest.mark.parametrize(("about", "value", "shown"), [(LOGIN, VALUE, SHOWN), (LOGINS, [VALUE], [SHOWN])])
@pytest.mark.parametrize("runner", ["python-script", "local-shell-cmd", "orquesta"])
def test_secret_field_is_masked(tmp_path: Path, runner: str, about: Any, value: Any, shown: Any) -> None:
    action = {"name": "weigh", "runner_type": runner, "parameters": {"load": about}}
    workflow = {"version": 1.0, "tasks": {"a": {"action": "core.noop"}}}
    if runner == "orquesta":
        action["entry_point"] = "workflows/weigh.yaml"
    project, _ = imported(tmp_path, {"actions/weigh.yaml": action, "actions/workflows/weigh.yaml": workflow})
    definitions = project.actions | project.workflows
    assert masked(value, definitions["weigh"]["parameters"]["load"]) == shown


def test_default_with_a_secret_field_is_in_no_variable(tmp_path: Path) -> None:
    about = LOGIN | {"default": VALUE}
    action = {"name": "weigh", "runner_type": "orquesta", "entry_point": "workflows/weigh.yaml"}
    workflow = {"version": 1.0, "input": ["load"], "tasks": {"a": {"action": "core.noop"}}}
    files = {"actions/weigh.yaml": action | {"parameters": {"load": about}}}
    project, _ = imported(tmp_path, files | {"actions/workflows/weigh.yaml": workflow})
    assert "p1" not in str(project.workflows["weigh"].get("vars"))


def test_secret_field_of_a_question_is_masked(tmp_path: Path) -> None:
    ask = {"action": "core.ask", "input": {"schema": LOGIN}}
    action = {"name": "weigh", "runner_type": "orquesta", "entry_point": "workflows/weigh.yaml"}
    workflow = {"version": 1.0, "tasks": {"a": ask}}
    project, _ = imported(tmp_path, {"actions/weigh.yaml": action, "actions/workflows/weigh.yaml": workflow})
    inquiry = project.workflows["weigh"]["tasks"]["a"]["inquiry"]
    assert masked(VALUE, inquiry["schema"]) == SHOWN


@pytest.mark.parametrize(
    ("about", "accepted", "refused"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, [None, "x", 5], [True]),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, [None, "x", 5], [True]),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, [None, "x"], [5]),
        ({"type": "string", "anyOf": [{"minLength": 2}, {"enum": ["x"]}]}, ["xx", "x"], [None, "y"]),
        ({"type": "string", "format": "ipv4"}, [None, "no address"], [5]),
        ({"type": "array", "items": {"type": "string", "format": "email"}}, [None, ["no"]], [[5]]),
        ({"type": "string", "enum": ["a", "b"]}, ["a"], [None, "c"]),
        ({"type": "string", "enum": ["a", "b"], "default": "a"}, ["b", None], ["c"]),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}], "default": 5}, ["b", None, 5], [True]),
        ({}, [None, "x"], [5, True, []]),
        ({"description": "a"}, [None, "x"], [5]),
        ({"enum": ["a", 5]}, ["a"], [None, 5]),
        ({"default": "x"}, [None, "y", 5], []),
        ({"required": True}, [None, "y", 5], []),
        ({"type": "object", "properties": {"e": {"enum": ["a"]}}}, [{}, {"e": "a"}, None], [{"e": None}]),
        ({"type": "object", "properties": {"format": {"type": "string"}}}, [{"format": "x"}], [{"format": 5}]),
        ({"type": "object", "properties": {"e": {}}}, [{"e": "a"}, {"e": None}], [{"e": 5}]),
    ],
)  # fmt: skip
def test_values_of_a_parameter_are_those_of_stackstorm(
    tmp_path: Path, about: dict[str, Any], accepted: list[Any], refused: list[Any]
) -> None:
    """StackStorm's own module of schemas gave the expectations."""
    action = {"name": "weigh", "runner_type": "local-shell-cmd", "parameters": {"load": about}}
    project, _ = imported(tmp_path, {"actions/weigh.yaml": action})
    mapped = {
        key: value
        for key, value in project.actions["weigh"]["parameters"]["load"].items()
        if key != "required"
    }
    validator = jsonschema.Draft202012Validator(mapped, format_checker=jsonschema.FormatChecker())
    assert [value for value in accepted if not validator.is_valid(value)] == []
    assert [value for value in refused if validator.is_valid(value)] == []


@pytest.mark.parametrize("runner", ["orquesta", "action-chain"])
def test_choice_of_a_workflow_that_may_be_null_is_named(tmp_path: Path, runner: str) -> None:
    action = {"name": "weigh", "runner_type": runner, "entry_point": "workflows/weigh.yaml"}
    parameters = {"phase": {"type": "string", "enum": ["a", "b"]}, "other": {"enum": ["a"], "default": "a"}}
    workflow = {"version": 1.0, "input": ["phase"], "tasks": {"a": {"action": "core.noop"}}}
    if runner == "action-chain":
        workflow = {"chain": [{"name": "a", "ref": "core.noop"}]}
    files = {
        "actions/weigh.yaml": action | {"parameters": parameters},
        "actions/workflows/weigh.yaml": workflow,
    }
    _, gaps = imported(tmp_path, files)
    named = {gap for gap in gaps if "an optional choice" in gap}
    assert named == {"actions/weigh.yaml:7 the parameter phase, an optional choice"}
