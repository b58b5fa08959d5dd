"""Documents and YAML to workflows, with every problem at its file and line; and workflows to YAML.

In YAML the tasks may be a mapping by name, which is how `to_yaml` writes them, or a list of tasks with names;
the ref of the workflow stands under `workflow`. Everything else is the stored document.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from penstock.errors import DefinitionError
from penstock.workflows import yaml_text
from penstock.workflows.check import invalid, require
from penstock.workflows.known import Known
from penstock.workflows.model import (
    FORMAT,
    Inquiry,
    ItemFailures,
    Step,
    Task,
    Transition,
    WaitForEvent,
    Workflow,
)
from penstock.workflows.problems import Path, Problem


def from_yaml(text: str, file: str = "<text>", known: Mapping[str, Known] | None = None) -> Workflow:
    """The workflow of a YAML text. Raises InvalidWorkflow with all its problems, DefinitionError if it is no
    YAML."""
    value, marks = yaml_text.read(text, file)
    if not isinstance(value, dict):
        raise DefinitionError(f"{file}: a workflow is a mapping with `workflow`, `tasks`, ...")
    document, moved = _document(value)
    marks = {_renamed(path, moved): mark for path, mark in marks.items()}

    def where(path: Path) -> str:
        return yaml_text.place(file, marks, path)

    try:
        workflow = Workflow.model_validate(document)
    except ValidationError as error:
        ref = str(document.get("ref", "in " + file))
        raise invalid(ref, [p.at(where(p.path)) for p in shape_problems(error, document)]) from None
    return require(workflow, known, where)


def from_document(document: Mapping[str, Any]) -> Workflow:
    """The workflow of a stored document, which was checked when it was stored."""
    try:
        return Workflow.model_validate(document)
    except ValidationError as error:
        raise invalid(str(document.get("ref", "?")), shape_problems(error, document)) from None


def to_yaml(workflow: Workflow) -> str:
    """A workflow as YAML. `from_yaml` gives the same workflow, with the same digest."""
    document = workflow.document()
    written: dict[str, Any] = {"workflow": document.pop("ref")}
    if FORMAT != 1:
        written["format"] = FORMAT
    document.pop("format")
    tasks = document.pop("tasks")
    after = {key: document.pop(key) for key in ("output", "on_exit") if key in document}
    written |= document
    written["tasks"] = {task["name"]: _ordered(task, Task) for task in tasks}
    if "on_exit" in after:
        after["on_exit"] = _ordered(after["on_exit"], Step)
    return yaml_text.write(written | after)


_FIRST = ("action", "workflow", "wait_for_event", "inquiry", "input", "needs", "join", "when")


def _ordered(task: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    order = [*_FIRST, *model.model_fields]
    return {key: task[key] for key in sorted(task, key=order.index) if key != "name"}


def _document(value: dict[str, Any]) -> tuple[dict[str, Any], dict[Path, Path]]:
    """The stored document of what was written in YAML, and which paths have another name in it."""
    document = {"format": FORMAT, **value}
    moved: dict[Path, Path] = {}
    if "workflow" in document and "ref" not in document:
        document["ref"] = document.pop("workflow")
        moved[("workflow",)] = ("ref",)
    tasks = document.get("tasks")
    if isinstance(tasks, dict):
        document["tasks"] = [
            {"name": name, **task} if isinstance(task, dict) else task for name, task in tasks.items()
        ]
        moved |= {("tasks", name): ("tasks", n) for n, name in enumerate(tasks)}
    for n, task in enumerate(document["tasks"] if isinstance(document.get("tasks"), list) else ()):
        if isinstance(task, dict):
            document["tasks"][n] = _with_lists(task)
    return document, moved


def _with_lists(task: dict[str, Any]) -> dict[str, Any]:
    """`needs: a` for `needs: [a]`, and the same for `do`."""
    task = dict(task)
    if isinstance(task.get("needs"), str):
        task["needs"] = [task["needs"]]
    if isinstance(task.get("next"), list):
        task["next"] = [
            {**way, "do": [way["do"]]} if isinstance(way, dict) and isinstance(way.get("do"), str) else way
            for way in task["next"]
        ]
    return task


def _renamed(path: Path, moved: Mapping[Path, Path]) -> Path:
    for n in (2, 1):
        if path[:n] in moved:
            return (*moved[path[:n]], *path[n:])
    return path


_MODELS: dict[str, type[BaseModel]] = {
    "next": Transition,
    "wait_for_event": WaitForEvent,
    "inquiry": Inquiry,
    "item_failures": ItemFailures,
    "tasks": Task,
    "on_exit": Step,
}


def shape_problems(error: ValidationError, document: Any) -> list[Problem]:
    """What pydantic found, in paths of the document and in our words. A union says several things: the first
    is kept."""
    found: dict[Path, Problem] = {}
    for detail in error.errors():
        path = _existing(detail["loc"], document)
        message, hint = detail["msg"].removeprefix("Value error, "), None
        if detail["type"] == "extra_forbidden":
            path = (*path[:-1], str(detail["loc"][-1]))
            message, hint = f"there is no option `{path[-1]}`", _option(path)
        elif detail["type"] == "missing":
            message = f"`{detail['loc'][-1]}` is missing"
        elif detail["type"] == "string_pattern_mismatch":
            message, hint = (
                f"{detail['input']!r} cannot be used here",
                _PATTERNS.get(str(path[-1] if path else "")),
            )
        if path in found:
            continue
        found[path] = Problem(path, message, hint)
    return list(found.values())


_NAME = "A name is made of letters, digits and _, so that expressions can say `tasks.<name>`."
_PATTERNS = {
    "name": _NAME,
    "ref": "A ref is `pack.name`.",
    "action": "A ref is `pack.name`; or write noop, or fail.",
}


def _option(path: Path) -> str:
    words = [part for part in path[:-1] if isinstance(part, str)]
    model = next((_MODELS[word] for word in reversed(words) if word in _MODELS), Workflow)
    options = [field.alias or name for name, field in model.model_fields.items()]
    near = get_close_matches(str(path[-1]), options, n=1)
    return f"Did you mean `{near[0]}`?" if near else f"There is: {', '.join(options)}."


def _existing(loc: tuple[int | str, ...], document: Any) -> Path:
    """The parts of a pydantic location that are in the document; names of union members are not."""
    path: list[str | int] = []
    here: Any = document
    for part in loc:
        try:
            here = here[part]
        except (KeyError, IndexError, TypeError):
            continue
        path.append(part)
    return tuple(path)
