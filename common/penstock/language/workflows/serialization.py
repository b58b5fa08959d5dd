"""The reading of workflows from YAML and JSON, with the file and line of every problem, and the writing to YAML.

In YAML the tasks are a mapping by name, as `to_yaml` writes them, or a list of tasks with names. The key `workflow`
has the ref. Everything else is as in the stored document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from penstock.extras import needed
from penstock.language.terms.options import Problem, problems
from penstock.language.terms.sources import Location, Source
from penstock.language.workflows.check import refusal, require
from penstock.language.workflows.model import FORMAT, Workflow
from penstock.language.workflows.task import Step, Task


def from_yaml(text: str, file: str = "<text>") -> Workflow:
    """Return the workflow of a YAML text. Raises one DefinitionError for all faults, with their lines."""
    with needed():
        from penstock.language.workflows import safe_yaml
    value, marks = safe_yaml.read(text, file)
    source = Source(file, 1, {place: line for place, (line, _) in marks.items()})
    if not isinstance(value, dict):
        raise source.wrong("it is not a workflow", "Write a mapping with `workflow`, `tasks` and so on.")
    return from_value(value, source)


def from_value(value: Mapping[str, Any], source: Source) -> Workflow:
    """Return the workflow of parsed YAML, which may be a part of a larger file."""
    body, moved = _body(value)
    inside = len(source.within)
    lines = {
        (*place[:inside], *_renamed(place[inside:], moved)): line
        for place, line in source.lines.items()
        if place[:inside] == source.within
    }
    source = Source(source.file, source.line, lines, source.within)
    tasks = value.get("tasks")
    return require(_shaped(body, source, list(tasks) if isinstance(tasks, dict) else None), source)


def from_body(body: Mapping[str, Any]) -> Workflow:
    """Return the workflow of a stored body, which was checked when it was stored."""
    return _shaped(dict(body), Source("?", 0))


def _shaped(body: dict[str, Any], source: Source, named: Sequence[str] | None = None) -> Workflow:
    try:
        return Workflow.model_validate(body)
    except ValidationError as error:
        tasks = body.get("tasks")
        names: Sequence[object] = named or [
            task.get("name", n) if isinstance(task, dict) else n
            for n, task in enumerate(tasks if isinstance(tasks, list) else ())
        ]
        raise refusal(str(body.get("ref", "?")), shape_problems(error, body), source, names) from None


def to_yaml(workflow: Workflow) -> str:
    """Return a workflow as YAML. `from_yaml` reads it as an equal workflow, with the same digest."""
    body = workflow.body()
    written: dict[str, Any] = {"workflow": body.pop("ref")}
    if body.pop("format") != FORMAT:
        written["format"] = workflow.format
    tasks = body.pop("tasks")
    tail = {key: body.pop(key) for key in ("output", "on_exit") if key in body}
    written |= body
    written["tasks"] = {task["name"]: _ordered(task, Task) for task in tasks}
    if "on_exit" in tail:
        tail["on_exit"] = _ordered(tail["on_exit"], Step)
    with needed():
        from penstock.language.workflows import safe_yaml
    return safe_yaml.write(written | tail)


_FIRST = ("action", "workflow", "wait_for_event", "inquiry", "input", "needs", "join", "when")


def _ordered(task: dict[str, Any], model: type[Step]) -> dict[str, Any]:
    order = [*_FIRST, *model.model_fields]
    return {key: task[key] for key in sorted(task, key=order.index) if key != "name"}


def _body(value: Mapping[str, Any]) -> tuple[dict[str, Any], dict[Location, Location]]:
    """Return the stored body of a YAML mapping, and the places that have another path in the body."""
    body: dict[str, Any] = {"format": FORMAT, **value}
    moved: dict[Location, Location] = {}
    if "workflow" in body and "ref" not in body:
        body["ref"] = body.pop("workflow")
        moved[("workflow",)] = ("ref",)
    tasks = body.get("tasks")
    if isinstance(tasks, dict):
        body["tasks"] = [
            {"name": name, **task} if isinstance(task, dict) else task for name, task in tasks.items()
        ]
        moved |= {("tasks", name): ("tasks", n) for n, name in enumerate(tasks)}
    return body, moved


def _renamed(place: Location, moved: Mapping[Location, Location]) -> Location:
    for n in (2, 1):
        if place[:n] in moved:
            return (*moved[place[:n]], *place[n:])
    return place


def shape_problems(error: ValidationError, body: Any) -> list[Problem]:
    """Return the errors of pydantic at places of the body. For a union, the error of only one member is kept."""
    by_place: dict[Location, Problem] = {}
    for problem in problems(error):
        place = _existing(problem.at, body)
        if problem.message == "is missing":
            place = (*place, *problem.at[-1:])
        if place not in by_place or (by_place[place].general and not problem.general):
            by_place[place] = replace(problem, at=place)
    return list(by_place.values())


def _existing(location: Location, body: Any) -> Location:
    """Return the parts of a pydantic location that exist in the body. Names of union members do not."""
    place: list[str | int] = []
    node: Any = body
    for part in location:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            continue
        place.append(part)
    return tuple(place)
