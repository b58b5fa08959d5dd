"""The definitions that a simulation knows: the loaded ones, and those from the modules of what it was asked to run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from penstock.engine.plan import Plan
from penstock.errors import NotFound
from penstock.language.definitions.action import Action
from penstock.language.definitions.rule import Rule
from penstock.language.definitions.trigger import Trigger
from penstock.language.loading import Definitions, load
from penstock.language.schemas import Schema
from penstock.language.terms.options import did_you_mean
from penstock.language.terms.sources import Source
from penstock.language.terms.waits import WAITS
from penstock.language.workflows.model import Workflow
from penstock.language.workflows.target import Target
from penstock.run.stored_json import as_stored

Loadable = str | Path | ModuleType | Definitions | Any
"""The type of what can be loaded: an argument of `load`, definitions, or a single definition."""

_PLANS: dict[int, tuple[Workflow, Plan]] = {}
"""The compiled workflows of all simulations of a process, by the identity of the workflow, which is kept alive by the
entry."""


def plan_of(workflow: Workflow) -> Plan:
    entry = _PLANS.get(id(workflow))
    if entry is None:
        entry = _PLANS[id(workflow)] = (workflow, Plan(workflow))
    return entry[1]


class KnownDefinitions:
    """The known definitions, by ref. A later definition of a ref replaces an earlier one."""

    def __init__(self) -> None:
        self.actions: dict[str, Action[..., Any]] = {}
        self.workflows: dict[str, Workflow] = {}
        self.triggers: dict[str, Trigger] = {}
        self.rules: dict[str, Rule] = {}
        self._numbers: dict[str, int] = {}
        self._schemas: dict[str, tuple[Any, Schema]] = {}
        self._payload_schemas: dict[str, tuple[Trigger, Schema]] = {}
        self._modules: set[str] = set()

    def add(self, source: Loadable) -> None:
        """Add the definitions of a source. Raises DefinitionError if a definition is not valid."""
        for item in self._read(source):
            for part in item.parts() if hasattr(item, "parts") else (item,):
                by_kind: Mapping[str, dict[str, Any]] = {
                    "action": self.actions,
                    "workflow": self.workflows,
                    "trigger": self.triggers,
                    "rule": self.rules,
                }
                if part.kind in by_kind:
                    by_kind[part.kind][part.ref] = part

    def _read(self, source: Loadable) -> Definitions | list[Any]:
        if isinstance(source, Definitions):
            return source
        if isinstance(source, str | Path | ModuleType):
            return load(source)
        self._add_neighbours(source)
        return [source]

    def _add_neighbours(self, definition: Any) -> None:
        """Add the other definitions of the module in which a definition was written."""
        source = getattr(definition, "source", None)
        if not isinstance(source, Source) or source.file in self._modules:
            return
        self._modules.add(source.file)
        for module in list(sys.modules.values()):
            if getattr(module, "__file__", None) == source.file:
                self.add(load(module))

    def runnable(self, target: Any) -> Action[..., Any] | Workflow:
        """Return an action or workflow, given by itself or by its ref. Raises NotFound if the simulation does not know
        it."""
        if not isinstance(target, str):
            self.add(target)
            target = target.ref
        definition = self.workflows.get(target) or self.actions.get(target)
        if definition is None:
            refs = [*self.actions, *self.workflows]
            raise NotFound(
                f"the simulation knows no action or workflow {target!r}",
                hint=f"{did_you_mean(target, refs)} Give it the module: simulation.load('shop.py').",
            )
        return definition

    def trigger(self, target: Any) -> Trigger:
        """Return a trigger, given by itself or by its ref. Raises NotFound if the simulation does not know it."""
        if not isinstance(target, str):
            self.add(target)
            target = target.ref
        if target not in self.triggers:
            hint = f"{did_you_mean(target, self.triggers)} Give it the module: simulation.load('shop.py')."
            raise NotFound(f"the simulation knows no trigger {target!r}", hint=hint)
        return self.triggers[target]

    def rules_of(self, trigger: str) -> list[Rule]:
        return [rule for rule in self.rules.values() if rule.trigger == trigger]

    def target(self, ref: str, *, is_faked: bool) -> Target | None:
        """Return the target of a task in the engine's form. A faked target need not be defined."""
        number = self._numbers.setdefault(ref, len(self._numbers))
        if ref in WAITS:
            return Target(number, "wait")
        if ref in self.workflows:
            return Target(number, "workflow")
        return Target(number, "action") if ref in self.actions or is_faked else None

    def schemas(self, ref: str) -> Mapping[int, Schema]:
        """Return the parameter schema of the action or workflow `ref`, keyed by its definition id."""
        return {self._numbers[ref]: self.schema(ref)}

    def schema(self, ref: str) -> Schema:
        action, workflow = self.actions.get(ref), self.workflows.get(ref)
        document = workflow.parameters if workflow else action.parameters_schema if action else None
        entry = self._schemas.get(ref)
        if entry is None or entry[0] is not document:
            entry = self._schemas[ref] = (document, _stored_schema(document))
        return entry[1]

    def payload_schema(self, trigger: Trigger) -> Schema:
        """Return the schema of a trigger's payloads."""
        entry = self._payload_schemas.get(trigger.ref)
        if entry is None or entry[0] is not trigger:
            entry = self._payload_schemas[trigger.ref] = (trigger, _stored_schema(trigger.payload_schema))
        return entry[1]

    @property
    def names(self) -> set[str]:
        """Return all names that a fake may replace: refs, and names of tasks."""
        tasks = {task.name for workflow in self.workflows.values() for task in workflow.tasks}
        return {*self.actions, *tasks}


def _stored_schema(document: Any) -> Schema:
    """Return a schema as an installation reads it from its database: the order of its members is that of hints and faults."""
    return Schema(None if document is None else as_stored(document))
