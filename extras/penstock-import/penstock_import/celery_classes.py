"""The tasks of a source that are objects of a class with a method `run`. None of them is mapped, so that each is a gap."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from penstock_import.celery_calls import imported_names, root_name, walk
from penstock_import.celery_makers import last_name
from penstock_import.celery_options import RETRY_OPTIONS, TASK_OPTIONS


@dataclass(frozen=True, slots=True)
class TaskClass:
    """A class that is a task: its file and statement, the name that it gives itself (None without one), and its options."""

    file: str
    node: ast.ClassDef
    name: ast.expr | None
    options: Mapping[str, ast.expr]


def task_classes(trees: Mapping[str, ast.Module], apps: Mapping[str, Collection[str]]) -> Iterator[TaskClass]:
    """Yield each class with a `run` that extends `Task` of Celery. The base of a decorated task, and a class that says it is
    `abstract`, do not count. `apps` are the names of applications, by file."""
    classes = _classes(trees)
    tasks = names_of_task_classes(trees, apps)
    bases = {
        last_name(word.value)
        for tree in trees.values()
        for node in walk(tree)
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg in ("base", "task_cls")
    }
    for file, nodes in classes.items():
        for node in nodes:
            values = dict(_attributes(node))
            is_abstract = getattr(values.get("abstract"), "value", False) is True
            runs = any(getattr(part, "name", "") == "run" for part in node.body)
            if node.name in tasks - bases and runs and not is_abstract:
                options = {key: value for key, value in values.items() if key in TASK_OPTIONS | RETRY_OPTIONS}
                yield TaskClass(file, node, values.get("name"), options)


def names_of_task_classes(trees: Mapping[str, ast.Module], apps: Mapping[str, Collection[str]]) -> set[str]:
    """Return the names of the classes that extend `Task` of Celery, also through another class."""
    classes = _classes(trees)
    tasks = {
        node.name
        for file, nodes in classes.items()
        for node in nodes
        if any(_is_celerys(base, trees[file], apps.get(file, ())) for base in node.bases)
    }
    while further := {
        node.name
        for nodes in classes.values()
        for node in nodes
        if node.name not in tasks and {last_name(base) for base in node.bases} & tasks
    }:
        tasks |= further
    return tasks


def _classes(trees: Mapping[str, ast.Module]) -> dict[str, list[ast.ClassDef]]:
    return {
        file: [node for node in walk(tree) if isinstance(node, ast.ClassDef)] for file, tree in trees.items()
    }


def _is_celerys(base: ast.expr, tree: ast.Module, apps: Collection[str]) -> bool:
    if last_name(base) != "Task":
        return False
    root = root_name(base)
    paths = dict(imported_names(tree))
    return paths.get(root, "").partition(".")[0] == "celery" or root in apps


def _attributes(class_: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    for part in class_.body:
        targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
        value = part.value if isinstance(part, ast.Assign | ast.AnnAssign) else None
        for target in targets:
            if isinstance(target, ast.Name) and value is not None:
                yield target.id, value
