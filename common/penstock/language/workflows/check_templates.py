"""The check for expressions of a workflow that are malformed, or use names that will not exist."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from penstock.errors import ExpressionError
from penstock.language.expressions import NamesUsed
from penstock.language.rules.parameter_checks import ONLY_GIVEN, names_of, unknown_names
from penstock.language.schedules.reserved_context import RESERVED
from penstock.language.terms.options import Problem, did_you_mean
from penstock.language.terms.sources import Location
from penstock.language.workflows import task_trigger_rules
from penstock.language.workflows.graph import EXIT, Graph, Node
from penstock.language.workflows.task import Task
from penstock.language.workflows.templates import Slot, context_rules, of_workflow, slots, uses

_OF_TASK = ("result", "status", "error")


def template_problems(graph: Graph) -> Iterator[Problem]:
    reader = _Reader(graph)
    for slot in of_workflow(graph.workflow):
        yield from reader.slot((), slot, None)
    declared = {task.name: n for n, task in enumerate(graph.workflow.tasks)}
    for node in graph.nodes:
        path: Location = ("tasks", declared[node.name])
        for slot in slots(node.step):
            yield from reader.slot(path, slot, node)
        yield from reader.rule(path, node)
    if graph.exit is not None:
        for slot in slots(graph.exit.step):
            yield from reader.slot((EXIT,), slot, None)


class _Reader:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.parameters = names_of(graph.workflow.parameters)
        self.variables = sorted(
            {*graph.workflow.vars, *(name for node in graph.nodes for name in _published(node))}
        )

    def slot(self, path: Location, slot: Slot, node: Node | None) -> Iterator[Problem]:
        """Yield the problems of one slot of a task, or of the workflow itself if `node` is None."""
        path = (*path, *slot.path)
        try:
            names = slot.names
        except ExpressionError as error:
            yield Problem(path, error.message.rstrip("."), error.hint)
            return
        for problem in unknown_names(names, {**dict.fromkeys(slot.roots), "parameters": self.parameters}):
            [root, *below] = problem.at
            hint = problem.hint if below else _instead(str(root), slot.roots)
            yield Problem(path, problem.message, hint)
        if "tasks" in slot.roots:
            yield from self.tasks(path, names, node)
            yield from self.variables_of(path, names, node)
        elif slot.path == ("vars",) and names.roots & {"tasks", "vars"}:
            return
        if node and slot.stage == "decide":
            yield from self.outcome_by_text(path, names, node)

    def tasks(self, path: Location, names: NamesUsed, node: Node | None) -> Iterator[Problem]:
        if names.whole("tasks"):
            hint = "Write `tasks.<name>`, so that it is known beforehand which results are needed."
            yield Problem(path, "it uses `tasks` without naming one", hint)
        own = {node.name} if node else set()
        for used in sorted({str(name) for name in names.under("tasks")}):
            fields = sorted(str(field) for field in names.under("tasks", used) if field not in _OF_TASK)
            if fields:
                hint = f"Write `tasks.{used}.result.{fields[0]}`. A task has {', '.join(_OF_TASK)}."
                yield Problem(path, f"a task has no `{fields[0]}`", hint)
            if used not in self.graph.index or used == EXIT:
                yield Problem(path, f"there is no task `{used}`", did_you_mean(used, self.graph.index))
            elif used in own:
                yield Problem(
                    path,
                    f"`{used}` uses its own result",
                    "In `publish` and `next`, after its end, write `result`.",
                )
            elif node and not self.graph.comes_before(self.graph.index[used], node.index):
                hint = f"Add `{used}` to the `needs` of `{node.name}`."
                yield Problem(path, f"it uses `{used}`, which does not come before it", hint)

    def variables_of(self, path: Location, names: NamesUsed, node: Node | None) -> Iterator[Problem]:
        # `context.x` is known only at run time. A name in `vars.x` that no task publishes can be reported now.
        publishers = self.graph.publishers
        for name in sorted(str(name) for name in names.under("vars")):
            if name in self.graph.workflow.vars or publishers.of(name, None if node is None else node.index):
                continue
            if node and name in _published(node):
                hint = f"Set an initial value in `vars` of the workflow: {{{name}: ...}}."
                yield Problem(path, f"the variable `{name}` has no value before this task", hint)
            elif publishers.of(name, None):
                hint = (
                    "Let this task come after the task that publishes the variable, or set an initial value "
                    "in `vars` of the workflow."
                )
                yield Problem(path, f"the variable `{name}` is published by no task before this one", hint)
            else:
                hint = did_you_mean(name, self.variables)
                yield Problem(path, f"no task publishes the variable `{name}`", hint)

    def rule(self, path: Location, node: Node) -> Iterator[Problem]:
        """Yield problems of context comparisons with names that are neither parameters nor variables."""
        task = node.step
        if (
            not isinstance(task, Task)
            or task.when is None
            or self.parameters is None
            or self.graph.publishers.anything
        ):
            return
        for _, part in task_trigger_rules.walk(task.when):
            if isinstance(part, task_trigger_rules.ContextComparison) and part.op not in (
                "exists",
                "not exists",
            ):
                required = context_rules(part).variables or frozenset()
                available = {*self.parameters, *self.graph.workflow.vars, *self.variables, *RESERVED}
                if not required & available:
                    hint = did_you_mean(part.context.split(".")[0], [*self.parameters, *self.variables])
                    yield Problem((*path, "when"), f"the context has no `{part.context}`", hint)

    def outcome_by_text(self, path: Location, names: NamesUsed, node: Node) -> Iterator[Problem]:
        task = node.step
        assert isinstance(task, Task)
        used = sorted(name for name in uses(names).tasks if ("tasks", name, "status") in names.paths)
        if used and not task_trigger_rules.about_outcomes(task.when):
            hint = (
                f"An expression alone is evaluated only after success. Write {{failed: {used[0]}}} or the like, "
                "or put `all_done` beside the expression in `all`."
            )
            yield Problem(
                path, f"it asks for the status of `{used[0]}`, which is always `completed` here", hint
            )


def _published(node: Node) -> list[str]:
    parts = [node.step.publish, *(transition.publish for transition in node.transitions)]
    return [name for part in parts if isinstance(part, dict) for name in part]


_COMMON = {"params": "parameters", "ctx": "context", "variables": "vars", "task": "tasks", "output": "result"}


def _instead(root: str, roots: frozenset[str]) -> str:
    if root == "secrets":
        return ONLY_GIVEN
    if root in ("item", "index"):
        return "It is only available in a task with `with_items`."
    if root in ("result", "error", "status", "succeeded", "failed"):
        return (
            "It is only available in `publish` and `next`, after the end of the task itself. For another "
            "task, write `tasks.<name>.result`."
        )
    near = _COMMON.get(root) or next(iter(get_close_matches(root, roots, n=1)), None)
    meant = f"Did you mean `{near}`? " if near in roots else ""
    return f"{meant}Available: {', '.join(sorted(roots))}."
