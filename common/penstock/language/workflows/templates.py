"""The expressions of a workflow: their places, the time of their evaluation, and the names that each may use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from penstock.language.expressions import NamesUsed, condition, names_used
from penstock.language.workflows import task_trigger_rules
from penstock.language.workflows.model import Workflow
from penstock.language.workflows.task import Step, Task

Stage = Literal["decide", "fan", "start", "settle"]
"""The time of evaluation. decide: the tasks before have ended. fan: the task starts, to find its items. start: the
task or an item starts. settle: the task has ended."""

SCOPE = frozenset({"parameters", "vars", "tasks", "context", "system"})
"""The names that every expression of a workflow may use. `context` is the parameters, and over them the variables."""
OF_ITEM = frozenset({"item", "index"})
OF_END = frozenset({"status", "result", "error", "succeeded", "failed", "timed_out", "cancelled"})
OF_EVENT = frozenset({"event"})

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """A place with expressions. `path` leads to it from its step. `roots` are the names that its expressions may use."""

    path: Path
    stage: Stage
    template: Any
    roots: frozenset[str] = SCOPE
    is_condition: bool = False

    @property
    def names(self) -> NamesUsed:
        """Return the names that the expressions use. Raises ExpressionError if one is malformed."""
        return condition(self.template).names if self.is_condition else names_used(self.template)


def slots(step: Step) -> Iterator[Slot]:
    """Yield the slots of a task."""
    names = SCOPE | OF_ITEM if step.with_items is not None else SCOPE
    end = SCOPE | OF_END
    if isinstance(step, Task) and step.when is not None:
        for path, part in _located(step.when, ("when",)):
            if isinstance(part, str) and part not in task_trigger_rules.NAMED:
                yield Slot(path, "decide", part, is_condition=True)
    yield Slot(("with_items",), "fan", step.with_items)
    yield Slot(("concurrency",), "fan", step.concurrency)
    for field in ("delay", "route"):
        yield Slot((field,), "start", getattr(step, field), names)
    yield Slot(("input",), "start", step.input, names | {"secrets"})
    if step.inquiry:
        for field in ("prompt", "assignee", "default"):
            yield Slot(("inquiry", field), "start", getattr(step.inquiry, field), names)
    if step.wait_for_event and step.wait_for_event.filter is not None:
        path = ("wait_for_event", "filter")
        yield Slot(path, "start", step.wait_for_event.filter, names | OF_EVENT, is_condition=True)
    yield Slot(("publish",), "settle", step.publish, end)
    for number, transition in enumerate(step.next if isinstance(step, Task) else ()):
        yield Slot(("next", number, "when"), "settle", transition.when, end, is_condition=True)
        yield Slot(("next", number, "publish"), "settle", transition.publish, end)


def of_workflow(workflow: Workflow) -> Iterator[Slot]:
    """Yield the slots of the workflow itself. Its variables are evaluated before any task, and its output after all."""
    yield Slot(("vars",), "start", workflow.vars, frozenset({"parameters", "system"}))
    yield Slot(("output",), "settle", workflow.output)


def _located(rule: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    yield path, rule
    for number, part in enumerate(task_trigger_rules.parts(rule)):
        key = next(iter(type(rule).model_fields))
        yield from _located(part, (*path, key, number))


@dataclass(frozen=True, slots=True)
class Uses:
    """The facts that templates need: results of tasks, statuses of tasks, variables (None: all), and parameters."""

    results: frozenset[str] = frozenset()
    tasks: frozenset[str] = frozenset()
    variables: frozenset[str] | None = frozenset()
    parameters: bool = False
    own_result: bool = False

    def __or__(self, other: Uses) -> Uses:
        both = None
        if self.variables is not None and other.variables is not None:
            both = self.variables | other.variables
        return Uses(
            self.results | other.results,
            self.tasks | other.tasks,
            both,
            self.parameters or other.parameters,
            self.own_result or other.own_result,
        )


NOTHING = Uses()


def uses(names: NamesUsed) -> Uses:
    """Return the facts to load for expressions that read `names`. `check` requires that tasks are named one by one."""
    tasks = {str(name) for name in names.under("tasks")}
    results = {
        str(path[1])
        for path in names.paths
        if path[0] == "tasks" and len(path) > 1 and (len(path) == 2 or path[2] in ("result", "error"))
    }
    variables: frozenset[str] | None = frozenset(
        str(name) for root in ("vars", "context") for name in names.under(root)
    )
    if any(names.whole(root) for root in ("vars", "context")):
        variables = None
    return Uses(
        frozenset(results),
        frozenset(tasks),
        variables,
        bool(names.roots & {"parameters", "context"}),
        bool(names.roots & {"result", "error"}),
    )


def context_rules(rule: Any) -> Uses:
    """Return the facts that the comparisons `{context: ...}` of a rule need."""
    paths = {
        part.context
        for _, part in task_trigger_rules.walk(rule)
        if isinstance(part, task_trigger_rules.ContextComparison)
    }
    # A name with dots may be a path or a single name, so load the variables of both.
    variables = paths | {path.split(".")[0] for path in paths}
    return Uses(variables=frozenset(variables), parameters=bool(paths))
