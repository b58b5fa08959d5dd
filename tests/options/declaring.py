"""The doors of declarations: a YAML file, and calls of Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import (
    Action,
    Item,
    Limit,
    Route,
    Rule,
    Schedule,
    Trigger,
    action,
    command_action,
    http_action,
    kubernetes_action,
    workflow,
)
from penstock.language.definitions.trigger import trigger
from penstock.language.loading import Definitions, load
from penstock.language.workflows import from_yaml, task_builders
from tests.options.declared_options import Option

CODE = """
from dataclasses import dataclass
from penstock import Item

@dataclass
class Work:
    customer: str = "acme"

def work(**options):
    return options

def several(items: list[Item[Work]]) -> list[int]:
    return [1] * len(items)

def find():
    return []
"""
FLOW = from_yaml("workflow: shop.flow\ntasks: {t: {action: noop}}")
NAMED: dict[str, Any] = {"rules": Rule, "limits": Limit, "schedules": Schedule}
PROGRAMS: dict[str, Any] = {"command": command_action, "url": http_action, "image": kubernetes_action}


def pack(option: Option, name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pack with this entry alone."""
    key = f"walk::{name}" if option.path[0] == "routes" else name
    return {"name": "walk", option.path[0]: {key: entry}}


def in_yaml(folder: Path, document: Mapping[str, Any]) -> Definitions:
    """Read a pack from a file, as `penstock apply` does. JSON is YAML."""
    file = folder / "pack.yaml"
    file.write_text(json.dumps(document))
    return load(file)


def prepared(folder: Path) -> Path:
    """Lay the code of the packs into a folder."""
    (folder / "code").mkdir()
    (folder / "code" / "work.py").write_text(CODE)
    return folder


def in_python(option: Option, name: str, entry: Mapping[str, Any]) -> Definitions:
    """Declare the same in Python."""
    options = deepcopy(dict(entry))
    section, ref = option.path[0], {"ref": f"walk.{name}"}
    if section in NAMED:
        return Definitions([NAMED[section](**{**ref, **options})])
    if section == "routes":
        return Definitions([Route(**{"pattern": f"walk::{name}", **options})])
    if section == "triggers":
        return Definitions([_trigger({**ref, **options})])
    if section == "actions":
        return Definitions([_action({**ref, **options})])
    return Definitions([_workflow({**ref, **options})])


def _trigger(options: dict[str, Any]) -> Trigger:
    poll = options.get("poll")
    if not isinstance(poll, dict) or "every" not in poll:
        return Trigger(**options)
    step_options = {name: value for name, value in options.items() if name != "poll"}
    return trigger(**{name: value for name, value in poll.items() if name != "function"}, **step_options)(
        _find
    )


def _find() -> list[Any]:
    return []


def _action(options: dict[str, Any]) -> Action[..., Any]:
    for entry, make in PROGRAMS.items():
        if entry in options:
            declared: Action[..., Any] = make(options.pop("ref"), options.pop(entry), **options)
            return declared

    def work(**options):  # type: ignore[no-untyped-def]
        return options

    function: Any = work if options.get("batch") is None else _several
    options.pop("function", None)
    schemas = {name: options.pop(name) for name in ("parameters", "result") if name in options}
    return action(**options)(function).with_schemas(**schemas)


@dataclass
class _Work:
    customer: str


def _several(items: list[Item[_Work]]) -> list[int]:
    return [1] * len(items)


def _workflow(options: dict[str, Any]) -> Any:
    steps, last = options.pop("tasks"), options.pop("on_exit", None)
    options.pop("workflow", None)

    def flow() -> None:
        for name, step in steps.items():
            _task(name, step)
        if isinstance(last, dict):
            task_builders.on_exit(_task("last", last))
        elif last is not None:
            task_builders.on_exit(last)

    return workflow(**options)(flow)


def _task(name: str, step: dict[str, Any]) -> Any:
    step_options = {"name": name, **step}
    for word, make in (("wait_for_event", "trigger"), ("inquiry", "prompt")):
        if isinstance(inside := step_options.get(word), dict):
            del step_options[word]
            rest_of_it = {name: value for name, value in inside.items() if name != make}
            return getattr(task_builders, word)(inside.get(make), **rest_of_it, **step_options)
    called, options = step_options.pop("action", None), step_options.pop("input", None)
    if called is None and step_options.get("workflow") == FLOW.ref:
        called = FLOW
        del step_options["workflow"]
    return task_builders.task(called, options, **step_options)
