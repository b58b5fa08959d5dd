"""Warnings for tasks that are skipped with a source, although their condition has an alternative for its skip.

`paid.when(any_of(amount <= 1000, approved == True))` seems to pay small amounts without the question `approved`. But a
condition without a rule about outcomes also needs the success of each source, and a skipped question is not a success."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from penstock.language.loading.lint import Fault
from penstock.language.terms.sources import shown
from penstock.language.workflows.graph import Graph, Node
from penstock.language.workflows.model import Workflow
from penstock.language.workflows.skip_reason import shown_rule
from penstock.language.workflows.task import Task
from penstock.language.workflows.task_trigger_rules import AnyOf, about_outcomes, walk


def skipped_alternatives(workflow: Workflow) -> Iterator[Fault]:
    """Yield a warning for each task with such a condition. `workflow` was checked."""
    graph = Graph(workflow)
    for node in graph.nodes:
        task = node.step
        if not isinstance(task, Task) or task.when is None or node.early_success or about_outcomes(task.when):
            continue
        for source in node.sources:
            if _may_be_skipped(graph[source]) and _has_alternative(task.when, graph[source].name):
                yield _warning(workflow, node, graph[source].name)


def _may_be_skipped(source: Node) -> bool:
    return isinstance(source.step, Task) and source.step.when is not None


def _has_alternative(rule: Any, source: str) -> bool:
    """Return whether a part of a rule reads the result of `source`, and another part stands beside it as an alternative."""
    reads = re.compile(rf"\btasks\.{re.escape(source)}\b")
    for _, part in walk(rule):
        if isinstance(part, AnyOf):
            alternatives = [shown_rule(alternative) for alternative in part.any]
        elif isinstance(part, str):
            alternatives = re.split(r"\bor\b", part)
        else:
            continue
        reading = [text for text in alternatives if reads.search(text)]
        if 0 < len(reading) < len(alternatives):
            return True
    return False


def _warning(workflow: Workflow, node: Node, source: str) -> Fault:
    number = next(number for number, task in enumerate(workflow.tasks) if task.name == node.name)
    place = workflow.source.at(("tasks", number, "when"))
    return Fault(
        f"workflow {workflow.ref}: task {node.name} is skipped whenever {source} is skipped, also if its condition is true",
        shown(place.file),
        place.line,
        "A condition without a rule about outcomes needs the success of each task before it. To run without "
        f"{source}, name the tasks that must succeed: all_of(success(...), any_of(...)), or in YAML "
        "when: {all: [{success: ...}, {any: [...]}]}.",
        is_warning=True,
    )
