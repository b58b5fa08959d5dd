"""What is wrong with a workflow, all of it at once: each problem with its place and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for

from penstock.errors import InvalidWorkflow
from penstock.workflows import rules
from penstock.workflows.check_templates import template_problems
from penstock.workflows.check_terms import term_problems
from penstock.workflows.graph import EXIT, Graph, circle, incoming
from penstock.workflows.known import Known
from penstock.workflows.model import Step, Workflow
from penstock.workflows.problems import Path, Problem, suggestion


def check(workflow: Workflow, known: Mapping[str, Known] | None = None) -> list[Problem]:
    """The problems of a workflow; none if it can run.

    `known` are the actions, workflows and triggers that exist, by ref. Without it their refs are not
    checked."""
    names = [task.name for task in workflow.tasks]
    found = [*_names(names), *_schema(workflow)]
    if not found:
        found = [*_edges(workflow, names)]
    if not found:
        found = [*_circle(workflow)]
    if not found:
        graph = Graph(workflow)
        found = [*term_problems(graph), *template_problems(graph)]
    if known is not None:
        found += _refs(workflow, known)
    return found


def require(
    workflow: Workflow,
    known: Mapping[str, Known] | None = None,
    where: Callable[[Path], str | None] = lambda path: None,
) -> Workflow:
    """The workflow, or InvalidWorkflow with all its problems. `where` tells the file and line of a path."""
    problems = [problem.at(where(problem.path)) for problem in check(workflow, known)]
    if problems:
        raise invalid(workflow.ref, problems)
    return workflow


def invalid(ref: str, problems: list[Problem]) -> InvalidWorkflow:
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    text = "\n".join(f"  {problem}" for problem in problems)
    return InvalidWorkflow(f"workflow {ref} has {count}:\n{text}", problems=problems)


def _names(names: list[str]) -> Iterator[Problem]:
    if not names:
        yield Problem(("tasks",), "there are no tasks", "A workflow needs at least one.")
    seen: dict[str, int] = {}
    for number, name in enumerate(names):
        if name in seen:
            yield Problem(("tasks", number, "name"), f"there are two tasks `{name}`", "Rename one of them.")
        if name == EXIT:
            yield Problem(
                ("tasks", number, "name"), f"`{EXIT}` is the name of the exit task", "Take another."
            )
        seen[name] = number


def _schema(workflow: Workflow) -> Iterator[Problem]:
    schemas: list[tuple[Path, dict[str, Any]]] = [(("parameters",), workflow.parameters)]
    for path, step in steps(workflow):
        if step.inquiry:
            schemas.append(((*path, "inquiry", "schema"), step.inquiry.answer))
    for path, schema in schemas:
        try:
            validator_for(schema, default=validator_for({})).check_schema(schema)
        except SchemaError as error:
            yield Problem(path, f"it is not a JSON Schema: {error.message}", "See https://json-schema.org.")


def steps(workflow: Workflow) -> Iterator[tuple[Path, Step]]:
    """Every task, that of `on_exit` too, with the path to it."""
    for number, task in enumerate(workflow.tasks):
        yield ("tasks", number), task
    if workflow.on_exit is not None:
        yield ("on_exit",), workflow.on_exit


def _edges(workflow: Workflow, names: list[str]) -> Iterator[Problem]:
    """Names that are no tasks, tasks that wait for themselves, and edges that were written twice."""
    led = {(name, task.name) for task in workflow.tasks for way in task.next for name in way.do}
    for number, task in enumerate(workflow.tasks):
        path: Path = ("tasks", number)
        for n, name in enumerate(task.needs):
            yield from _known_task((*path, "needs", n), name, names)
            if (task.name, name) in led:
                hint = f"Keep one of the two: `needs` here, or `next` of `{name}`."
                yield Problem((*path, "needs", n), f"`next` of `{name}` leads here already", hint)
        for n, way in enumerate(task.next):
            for m, name in enumerate(way.do):
                yield from _known_task((*path, "next", n, "do", m), name, names)
        for name in sorted(rules.tasks_named(task.when)):
            yield from _known_task((*path, "when"), name, names)


def _known_task(path: Path, name: str, names: list[str]) -> Iterator[Problem]:
    if name not in names:
        yield Problem(path, f"there is no task `{name}`", suggestion(name, names))


def _circle(workflow: Workflow) -> Iterator[Problem]:
    tasks = workflow.tasks
    found = circle(incoming(tasks, {task.name: n for n, task in enumerate(tasks)}))
    if found:
        way = [tasks[position].name for position in reversed(found)]
        start = way.index(tasks[min(found)].name)
        way = [*way[start:], *way[:start], way[start]]
        yield Problem(
            ("tasks", min(found)),
            f"the tasks go in a circle: {' -> '.join(way)}",
            "A task runs once. For a loop, let a sub-workflow call itself, or use with_items.",
        )


_KIND = {"action": "action", "workflow": "workflow", "event": "trigger"}


def _refs(workflow: Workflow, known: Mapping[str, Known]) -> Iterator[Problem]:
    known = {workflow.ref: Known("workflow", workflow.parameters), **known}
    for path, step in steps(workflow):
        if step.kind not in _KIND:
            continue
        field = "wait_for_event" if step.kind == "event" else step.kind
        ref = step.wait_for_event.trigger if step.wait_for_event else step.action or step.workflow or ""
        yield from _ref((*path, field), ref, _KIND[step.kind], known)
        if ref in known and isinstance(step.input, dict) and step.kind != "event":
            yield from _input((*path, "input"), step.input, ref, known[ref].parameters)


def _ref(path: Path, ref: str, kind: str, known: Mapping[str, Known]) -> Iterator[Problem]:
    entry = known.get(ref)
    if entry is None:
        refs = [name for name, other in known.items() if other.kind == kind]
        yield Problem(path, f"there is no {kind} `{ref}`", suggestion(ref, refs))
    elif entry.kind != kind:
        key = "wait_for_event" if entry.kind == "trigger" else entry.kind
        yield Problem(
            path, f"`{ref}` is a{'n' * (entry.kind == 'action')} {entry.kind}", f"Write `{key}: {ref}`."
        )


def _input(
    path: Path, given: dict[str, object], ref: str, schema: Mapping[str, object] | None
) -> Iterator[Problem]:
    """Names of the input against the parameters. Values are checked when they are known, at the start."""
    if not schema or any("{{" in name for name in given):
        return
    properties, required = schema.get("properties"), schema.get("required") or ()
    if isinstance(properties, Mapping) and schema.get("additionalProperties") is False:
        for name in given:
            if name not in properties:
                yield Problem(
                    (*path, name), f"`{ref}` has no parameter `{name}`", suggestion(name, properties)
                )
    for name in required if isinstance(required, list | tuple) else ():
        if name not in given:
            yield Problem(path, f"`{ref}` needs the parameter `{name}`", f"Add `{name}: ...` to the input.")
