"""The check for run conditions of a task (`needs`, `when`, `join`) that contradict each other, or can never be met."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from penstock.language.terms.options import Problem
from penstock.language.terms.sources import Location
from penstock.language.workflows import task_trigger_rules
from penstock.language.workflows.graph import Graph, Node
from penstock.language.workflows.task import FAIL, NOOP, Task
from penstock.language.workflows.task_trigger_rules import FAILURE, SKIP, SUCCESS, SourceOutcomes

_MOST_SOURCES = 6
"""The maximum number of sources for which all combinations of outcomes are tried."""


def run_condition_problems(graph: Graph) -> Iterator[Problem]:
    declared = {task.name: n for n, task in enumerate(graph.workflow.tasks)}
    for node in graph.nodes:
        path: Location = ("tasks", declared[node.name])
        task = node.step
        assert isinstance(task, Task)
        problems = [*_join(graph, node, task, path), *_when(graph, node, task, path)]
        if not problems:
            problems = [*_never(graph, node, path)]
        yield from problems
        for number, transition in enumerate(task.next):
            if transition.when is False:
                yield Problem((*path, "next", number, "when"), "it is never taken", "Remove the transition.")


def _join(graph: Graph, node: Node, task: Task, path: Location) -> Iterator[Problem]:
    count = len(node.sources)
    if task.join is None:
        if task.needs and len(node.sources) > len(task.needs) and task.when is None:
            other_sources = ", ".join(graph[s].name for s in node.sources if graph[s].name not in task.needs)
            yield Problem(
                path,
                f"it has `needs`, and `next` of {other_sources} leads here too",
                "Say whether it waits for all of them or not: add `join: all`, `join: any` or a number.",
            )
    elif not count:
        yield Problem((*path, "join"), "nothing comes before this task", "Remove `join`, or add `needs`.")
    elif isinstance(task.join, int) and task.join > count:
        hint = f"Write a number up to {count}, or `all`."
        yield Problem(
            (*path, "join"),
            f"it waits for {task.join} tasks, but only {count} can lead to it, so it never runs",
            hint,
        )
    elif task.join != "all" and isinstance(task.when, str) and task.when in task_trigger_rules.NAMED:
        hint = "Keep one of the two. A rule in `when` applies to all `needs`, and `join` to the first tasks that succeed."
        yield Problem((*path, "join"), f"`join: {task.join}` and `when: {task.when}` contradict", hint)
    elif task.join == "all" and task.when in ("one_success", "one_failed"):
        hint = f"For `{task.when}` after all have ended, write `when: {{all: [all_done, {task.when}]}}`."
        yield Problem((*path, "join"), f"`{task.when}` does not wait for all", hint)


def _when(graph: Graph, node: Node, task: Task, path: Location) -> Iterator[Problem]:
    path = (*path, "when")
    source_names = {graph[source].name for source in node.sources}
    for name in sorted(task_trigger_rules.tasks_named(task.when) - source_names):
        hint = f"Add `{name}` to `needs`: a rule can only name the tasks directly before it."
        yield Problem(path, f"the rule names `{name}`, which is not directly before this task", hint)
    if not source_names and task.when in ("one_success", "one_failed"):
        yield Problem(path, "nothing comes before this task", "Add `needs`, or remove `when`.")


def _never(graph: Graph, node: Node, path: Location) -> Iterator[Problem]:
    if node.sources and not any(_runs(node, outcomes) for outcomes in _possible(graph, node)):
        hint = "No outcome of the tasks before it meets its conditions. See the trigger rules in docs/workflows.md."
        yield Problem((*path, "when" if node.rule else "needs"), "it can never run", hint)


def _runs(node: Node, outcomes: SourceOutcomes) -> bool:
    if outcomes.success < node.early_success:
        return False
    return node.rule is None or task_trigger_rules.holds(node.rule, outcomes, lambda leaf: None) is not False


def _possible(graph: Graph, node: Node) -> Iterator[SourceOutcomes]:
    """Yield the possible outcomes of the sources. With many sources, only those that the rule names are combined in
    all ways."""
    tried = [source for source in node.sources if source in node.named]
    unnamed = [source for source in node.sources if source not in node.named]
    if len(node.sources) <= _MOST_SOURCES:
        tried, unnamed = list(node.sources), []
    elif len(tried) > _MOST_SOURCES:
        yield SourceOutcomes(0)  # too many to try, so the rule is taken as possible
        return
    for ends in product(*(_ends(graph, node, source) for source in tried)):
        for same in (SUCCESS, FAILURE, SKIP) if unnamed else (None,):
            outcomes = SourceOutcomes(len(node.sources))
            pairs: list[tuple[int, Any]] = list(zip(tried, ends, strict=True))
            for source in unnamed:
                can = _ends(graph, node, source)
                pairs.append((source, same if same in can else can[0]))
            for source, end in pairs:
                setattr(outcomes, end, getattr(outcomes, end) + 1)
                outcomes.named[graph[source].name] = end
            yield outcomes


def _ends(graph: Graph, node: Node, source: int) -> tuple[str, ...]:
    """Return the possible outcomes of a source for this task. A transition is taken or not. An operator may skip any
    task."""
    source_node = graph[source]
    if source_node.routes and node.index in source_node.routes:
        return (SUCCESS, SKIP)
    if source_node.step.allow_failure or source_node.step.kind == NOOP:
        return (SUCCESS, SKIP)
    return (FAILURE, SKIP) if source_node.step.kind == FAIL else (SUCCESS, FAILURE, SKIP)
