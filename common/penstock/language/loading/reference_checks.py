"""Whether what refers to something refers to something that exists, and gives it what it takes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from penstock.errors import DefinitionError, InvalidInput
from penstock.language.definitions.rule import Rule
from penstock.language.definitions.schedule import Schedule
from penstock.language.expressions.template_checks import is_template
from penstock.language.options import Problem, did_you_mean
from penstock.language.schemas import Schema
from penstock.language.sources import Location

KnownRefs = Mapping[str, Collection[str]]
"""Refs that exist elsewhere, by kind: action, workflow, trigger."""
Found = tuple[Location, str, str | None]
"""Where in the definition, what is wrong, and a hint."""


class _ReferenceTargets:
    """What may be referred to, by ref."""

    def __init__(self, definitions: Sequence[Any], known: KnownRefs) -> None:
        from penstock.language.workflows.known_definition import KnownDefinition  # it imports definitions

        by_kind: dict[str, dict[str, Any]] = {"action": {}, "trigger": {}, "workflow": {}}
        for item in definitions:
            by_kind.setdefault(item.kind, {})[item.ref] = item
        workflows = by_kind["workflow"]
        self.actions = by_kind["action"]
        self.triggers = {*by_kind["trigger"], *known.get("trigger", ())}
        self.runnable_definitions = {ref: KnownDefinition("action") for ref in known.get("action", ())}
        self.runnable_definitions |= {ref: KnownDefinition("workflow") for ref in known.get("workflow", ())}
        self.runnable_definitions |= {
            ref: KnownDefinition("workflow", one.parameters) for ref, one in workflows.items()
        }
        self.runnable_definitions |= {
            ref: KnownDefinition("action", one.parameters_schema) for ref, one in self.actions.items()
        }
        self.runnable = set(self.runnable_definitions)
        self.workflows = {*workflows, *known.get("workflow", ())}
        self.for_workflows = {
            **{ref: KnownDefinition("trigger") for ref in self.triggers},
            **self.runnable_definitions,
        }


def check_references(definitions: Sequence[Any], known: KnownRefs) -> None:
    """Raises one DefinitionError for everything that is found."""
    from penstock.language.workflows.check import unknown_refs

    targets = _ReferenceTargets(definitions, known)
    lines: list[str] = []
    hints: list[str] = []
    for item in definitions:
        found: list[Problem] = [Problem(*one) for one in _problems(item, targets)]
        if item.kind == "workflow":
            found += unknown_refs(item, targets.for_workflows)
        for problem in found:
            message = problem if item.kind == "workflow" else problem.message
            lines.append(f"{item.source.at(problem.at)}: {item.kind} {item.ref}: {message}")
            hints += [problem.hint] if problem.hint else []
    if lines:
        raise DefinitionError("\n".join(lines), hint=hints[0] if hints else None)


def _problems(item: Any, targets: _ReferenceTargets) -> Iterator[Found]:
    if isinstance(item, Rule) and item.trigger not in targets.triggers:
        yield ("trigger",), f"unknown trigger {item.trigger!r}", did_you_mean(item.trigger, targets.triggers)
    if isinstance(item, Rule | Schedule):
        if item.action not in targets.runnable:
            yield ("action",), f"unknown action {item.action!r}", did_you_mean(item.action, targets.runnable)
        action = targets.actions.get(item.action)
        if action is not None:
            yield from _misfits(item.params, action.parameters_schema)
    if isinstance(item, Schedule) and item.retry is not None and item.action in targets.workflows:
        hint = "Set it on the tasks of the workflow."
        yield ("retry",), "retry: a workflow is not tried again as a whole", hint
    if item.kind == "action":
        for name in ("on_success", "on_failure"):
            for ref in getattr(item.choices, name):
                if ref not in targets.runnable:
                    yield (name,), f"{name}: unknown action {ref!r}", did_you_mean(ref, targets.runnable)


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
