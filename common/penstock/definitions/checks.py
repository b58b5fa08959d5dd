"""Whether what refers to something refers to something that exists, and gives it what it takes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from penstock.definitions.rule import Rule
from penstock.definitions.schedule import Schedule
from penstock.definitions.templates import is_template
from penstock.errors import DefinitionError, InvalidInput
from penstock.options import Problem, did_you_mean
from penstock.schemas import Schema
from penstock.sources import Location

if TYPE_CHECKING:
    from penstock.definitions.collection import Definitions

Known = Mapping[str, Collection[str]]
Found = tuple[Location, str, str | None]
"""Where in the definition, what is wrong, and a hint."""


def check_references(definitions: Definitions, known: Known) -> None:
    """Raises one DefinitionError for everything that is found."""
    triggers = {*definitions.triggers, *known.get("trigger", ())}
    runnable = {
        *definitions.actions,
        *definitions.workflows,
        *known.get("action", ()),
        *known.get("workflow", ()),
    }
    lines: list[str] = []
    hints: list[str] = []
    for item in definitions:
        for at, message, hint in _problems(item, definitions, triggers, runnable):
            lines.append(f"{item.source.at(at)}: {item.kind} {item.ref}: {message}")
            hints += [hint] if hint else []
    for workflow in definitions.workflows.values():
        for problem in _problems_of(workflow, definitions, known):
            lines.append(f"{workflow.source.at(problem.at)}: workflow {workflow.ref}: {problem}")
            hints += [problem.hint] if problem.hint else []
    if lines:
        raise DefinitionError("\n".join(lines), hint=hints[0] if hints else None)


def _problems(item: Any, definitions: Definitions, triggers: set[str], runnable: set[str]) -> Iterator[Found]:
    if isinstance(item, Rule) and item.trigger not in triggers:
        yield ("trigger",), f"unknown trigger {item.trigger!r}", did_you_mean(item.trigger, triggers)
    if isinstance(item, Rule | Schedule):
        if item.action not in runnable:
            yield ("action",), f"unknown action {item.action!r}", did_you_mean(item.action, runnable)
        action = definitions.actions.get(item.action)
        if action is not None:
            yield from _misfits(item.params, action.parameters_schema)
    if item.kind == "action":
        for name in ("on_success", "on_failure"):
            for ref in getattr(item.choices, name):
                if ref not in runnable:
                    yield (name,), f"{name}: unknown action {ref!r}", did_you_mean(ref, runnable)


def _problems_of(workflow: Any, definitions: Definitions, known: Known) -> Iterator[Problem]:
    """What a workflow refers to and is not there, and inputs that are not taken."""
    from penstock.workflows import known as workflows  # it imports definitions
    from penstock.workflows.check import unknown_refs

    there = {ref: workflows.Known("action") for ref in known.get("action", ())}
    there |= {ref: workflows.Known("workflow") for ref in known.get("workflow", ())}
    there |= {ref: workflows.Known("trigger") for ref in (*known.get("trigger", ()), *definitions.triggers)}
    there |= {ref: workflows.Known("workflow", one.parameters) for ref, one in definitions.workflows.items()}
    there |= {
        ref: workflows.Known("action", one.parameters_schema) for ref, one in definitions.actions.items()
    }
    return unknown_refs(workflow, there)


def _misfits(params: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Found]:
    """What can be said before templates are rendered: names, what is missing, and values that are no templates."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    if schema.get("additionalProperties") is False:
        for name in params:
            if name not in properties:
                yield ("params", name), f"the action takes no {name!r}", did_you_mean(name, properties)
    for name in schema.get("required", ()):
        if name not in params:
            yield ("params",), f"the action needs {name!r}", f"Add {name} to params."
    for name, value in params.items():
        if name in properties and not is_template(value):
            try:
                Schema({**properties[name], "$defs": schema.get("$defs", {})}).validate(value, what=name)
            except InvalidInput as error:
                yield ("params", name), error.message, error.hint
