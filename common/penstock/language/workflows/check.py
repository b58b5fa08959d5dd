"""The check of a whole workflow, which finds all problems at once, each with its place and its remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from penstock.errors import DefinitionError, as_one
from penstock.language.rules.parameter_checks import misfits
from penstock.language.terms.options import Problem, UnknownRef, did_you_mean
from penstock.language.terms.sources import Location, Source
from penstock.language.workflows import task_trigger_rules
from penstock.language.workflows.check_run_conditions import run_condition_problems
from penstock.language.workflows.check_templates import template_problems
from penstock.language.workflows.graph import EXIT, Graph, circle, incoming
from penstock.language.workflows.known_definition import KnownDefinition
from penstock.language.workflows.model import Workflow
from penstock.language.workflows.task import Step


def check(workflow: Workflow) -> list[Problem]:
    """Return the problems of a workflow by itself, or an empty list if it can run. `unknown_refs` checks its
    references."""
    names = [task.name for task in workflow.tasks]
    problems = [*_names(names)] or [*_edges(workflow, names)] or [*_circle(workflow)]
    if not problems:
        graph = Graph(workflow)
        problems = [*run_condition_problems(graph), *template_problems(graph)]
    return problems


def require(workflow: Workflow, source: Source) -> Workflow:
    """Return the workflow, which remembers its source. Raises one DefinitionError for all its faults."""
    if problems := check(workflow):
        raise refusal(workflow.ref, problems, source, [task.name for task in workflow.tasks])
    return workflow.written_at(source)


def refusal(
    ref: str, problems: Sequence[Problem], source: Source, names: Sequence[object]
) -> DefinitionError:
    """Return one error for all problems of a workflow. `names` are the names of its tasks. With several problems, each
    line has its own hint."""

    return as_one(
        [source.at(p.at).wrong(f"workflow {ref}: {with_task_name(p, names)}", p.hint) for p in problems]
    )


def with_task_name(problem: Problem, names: Sequence[object]) -> str:
    """Return a problem of a workflow as text. Its place has the name of the task, and not its number."""
    at = problem.at
    if at[:1] == ("tasks",) and len(at) > 1 and isinstance(at[1], int):
        return str(Problem(("tasks", str(names[at[1]]), *at[2:]), problem.message))
    return str(problem)


def _names(names: list[str]) -> Iterator[Problem]:
    if not names:
        yield Problem(("tasks",), "there are no tasks", "A workflow needs at least one.")
    numbers: dict[str, int] = {}
    for number, name in enumerate(names):
        if name in numbers:
            yield Problem(("tasks", number, "name"), f"there are two tasks `{name}`", "Rename one of them.")
        if name == EXIT:
            yield Problem(
                ("tasks", number, "name"), f"`{EXIT}` is the name of the exit task", "Take another."
            )
        numbers[name] = number


def steps(workflow: Workflow) -> Iterator[tuple[Location, Step]]:
    """Yield every task, including that of `on_exit`, with the path to it."""
    for number, task in enumerate(workflow.tasks):
        yield ("tasks", number), task
    if workflow.on_exit is not None:
        yield ("on_exit",), workflow.on_exit


def _edges(workflow: Workflow, names: list[str]) -> Iterator[Problem]:
    """Yield problems of edges: names that are not tasks, tasks that wait for themselves, and duplicate edges."""
    task_names = set(names)
    led = {(name, task.name) for task in workflow.tasks for way in task.next for name in way.do}
    for number, task in enumerate(workflow.tasks):
        path: Location = ("tasks", number)
        for n, name in enumerate(task.needs):
            yield from _known_task((*path, "needs", n), name, names, task_names)
            if (task.name, name) in led:
                hint = f"Keep one of the two: `needs` here, or `next` of `{name}`."
                yield Problem((*path, "needs", n), f"`next` of `{name}` leads here already", hint)
        for n, way in enumerate(task.next):
            for m, name in enumerate(way.do):
                yield from _known_task((*path, "next", n, "do", m), name, names, task_names)
        for name in sorted(task_trigger_rules.tasks_named(task.when)):
            yield from _known_task((*path, "when"), name, names, task_names)


def _known_task(path: Location, name: str, names: list[str], task_names: set[str]) -> Iterator[Problem]:
    if name not in task_names:
        yield Problem(path, f"there is no task `{name}`", did_you_mean(name, names))


def _circle(workflow: Workflow) -> Iterator[Problem]:
    tasks = workflow.tasks
    cycle = circle(incoming(tasks, {task.name: n for n, task in enumerate(tasks)}))
    if cycle:
        way = [tasks[position].name for position in reversed(cycle)]
        start = way.index(tasks[min(cycle)].name)
        way = [*way[start:], *way[:start], way[start]]
        yield Problem(
            ("tasks", min(cycle)),
            f"the tasks go in a circle: {' -> '.join(way)}",
            "A task runs once. For a loop, let a sub-workflow call itself, or use with_items.",
        )


_KIND = {"action": "action", "workflow": "workflow", "event": "trigger"}


def unknown_refs(workflow: Workflow, definitions: Mapping[str, KnownDefinition]) -> Iterator[Problem]:
    """Yield problems of the refs in a workflow: unknown refs, and inputs that they do not take. `definitions` are the
    known ones."""
    definitions = {workflow.ref: KnownDefinition("workflow", workflow.parameters), **definitions}
    for path, step in steps(workflow):
        if step.kind not in _KIND:
            continue
        field = "wait_for_event" if step.kind == "event" else step.kind
        ref = step.refers_to or ""
        yield from _ref((*path, field), ref, _KIND[step.kind], definitions)
        if ref in definitions and isinstance(step.input, dict) and step.kind != "event":
            schemas = {"parameters": workflow.parameters}
            for problem in misfits(step.input, ref, definitions[ref].schema, schemas=schemas):
                yield Problem((*path, "input", *problem.at), problem.message, problem.hint)


def _ref(
    path: Location, ref: str, kind: str, definitions: Mapping[str, KnownDefinition]
) -> Iterator[Problem]:
    entry = definitions.get(ref)
    if entry is None:
        refs = [name for name, other in definitions.items() if other.kind == kind]
        yield UnknownRef(path, f"there is no {kind} `{ref}`", did_you_mean(ref, refs))
    elif entry.kind != kind:
        key = "wait_for_event" if entry.kind == "trigger" else entry.kind
        yield Problem(
            path, f"`{ref}` is a{'n' * (entry.kind == 'action')} {entry.kind}", f"Write `{key}: {ref}`."
        )
