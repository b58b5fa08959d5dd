"""docs/reference/python.md and docs/reference/python/: a page of each public name of `penstock` and `penstock.testing`, and of
each module for packages, with what its code says and examples that were run."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import penstock
import penstock.testing
from docs.written.api_text import described, fenced, kind_of, value_docs
from docs.written.python_examples import BEFORE, EXAMPLES, RETURNED_EXAMPLES, TESTING_EXAMPLES
from tests.house_rules import PUBLIC

HEAD = """# Python

These pages are written by `docs/written`. Each name that `penstock` and `penstock.testing` export has a page with its signature, its
description, the errors that it raises, and an example that a test runs. Classes that Penstock creates and returns have pages, too. The
last table has the modules for [packages of your own](../extending.md).
"""
RETURNED: Mapping[str, str] = {
    "Breakers": "penstock.client.breakers",
    "Holds": "penstock.client.holds",
    "Limits": "penstock.client.limits",
    "Rules": "penstock.client.rules",
    "RunContext": "penstock.run.context",
    "Schedules": "penstock.client.schedules",
    "TaskHandle": "penstock.language.workflows.task_handle",
    "Views": "penstock.client.saved_views",
    "Workers": "penstock.client.workers",
}
"""The classes that users get from public names, and their modules."""
HAS_PAGES = ("penstock", "penstock.testing")
"""The modules with a page for each name."""
GUIDES: Mapping[str, str] = {
    "penstock.cli.output": "../../extending.md#commands",
    "penstock.errors": "../errors.md",
    "penstock.language.expressions": "../expressions.md",
    "penstock.language.loading.lint": "../../developing.md",
    "penstock.language.schedules.rrule": "../../schedules.md",
    "penstock.language.schemas": "../packs.md",
    "penstock.language.workflows.cloacina_trigger_rules": "../../coming-from/cloacina.md",
    "penstock.run.calls": "../../task-executors.md#writing-your-own",
    "penstock.run.task_executors": "../../task-executors.md#writing-your-own",
    "penstock.testing.executor_conformance": "../../task-executors.md#writing-your-own",
    "penstock.testing.scenarios": "../../task-executors.md#writing-your-own",
    "penstock_worker.executors.cluster_attempt": "../../task-executors.md#other-machines",
}
"""The page that shows the names of a module for packages in use."""


def modules() -> dict[str, list[str]]:
    """Return the public names of each module for packages that has one page."""
    return {module: _names(module, names) for module, names in PUBLIC.items() if module not in HAS_PAGES}


def _names(module: str, names: frozenset[str]) -> list[str]:
    loaded = importlib.import_module(module)
    if names != {"all"}:
        return sorted(names)
    exported = getattr(loaded, "__all__", None)
    return sorted(exported) if exported else sorted(_defined(loaded))


def _defined(module: Any) -> list[str]:
    """Return the classes and functions that a module defines. An error has a page of its own."""
    return [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
        if not (inspect.isclass(value) and issubclass(value, penstock.PenstockError))
    ]


def file_of(name: str, value: Any) -> str:
    """Return the file of a name. The kind is in it: `Action` and `action` are one file where capitals do not count."""
    return f"{kind_of(value)}-{name.lower()}.md"


def page() -> str:
    return (
        HEAD
        + _index("penstock", {name: getattr(penstock, name) for name in penstock.__all__})
        + _index(
            "penstock.testing", {name: getattr(penstock.testing, name) for name in penstock.testing.__all__}
        )
        + _index("Objects that you get", {name: _returned(name) for name in RETURNED})
        + "\n## Modules for packages\n\n| module | names |\n|---|---|\n"
        + "".join(
            f"| [`{module}`](python/{module}.md) | {', '.join(f'`{name}`' for name in names)} |\n"
            for module, names in modules().items()
        )
    )


def _index(title: str, values: Mapping[str, Any]) -> str:
    heading = f"`{title}`" if title.startswith("penstock") else title
    rows = "".join(
        f"| [`{name}`](python/{file_of(name, value)}) | {kind_of(value)} |\n"
        for name, value in values.items()
    )
    return f"\n## {heading}\n\n| name | |\n|---|---|\n{rows}"


def _returned(name: str) -> Any:
    return getattr(importlib.import_module(RETURNED[name]), name)


def _page_of(name: str, value: Any, module: str, home: str, example: str) -> str:
    begin = "\nYou get this object from Penstock, and do not create it yourself.\n"
    if name not in RETURNED:
        begin = fenced(f"from {module} import {name}")
    text = described(name, value, home, "##")
    return f"# {kind_of(value)} `{name}`\n{begin}{text}\n## Example\n{fenced(example)}"


def runnable(name: str) -> str:
    """Return the example of a name of `penstock`, with the imports and definitions that it needs."""
    example = EXAMPLES[name]
    names = _names_in(example)
    trigger, charge = BEFORE.split("\n\n")[1:3]
    before = [part.strip() for part, word in ((trigger, "order_placed"), (charge, "charge")) if word in names]
    imported = sorted({*_names_in("\n".join([*before, example])), name} & set(penstock.__all__))
    return "\n\n".join([f"from penstock import {', '.join(imported)}", *before, example])


def _names_in(code: str) -> set[str]:
    """Return the names that code reads and does not assign."""
    nodes = list(ast.walk(ast.parse(code)))
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    assigned = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    assigned |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return read - assigned - {node.name for node in nodes if isinstance(node, ast.ExceptHandler)}


def _of_penstock(name: str) -> str:
    home = f"penstock.{penstock._HOMES[name]}"
    value = getattr(penstock, name)
    return _page_of(name, value, "penstock", _defining(home, name), runnable(name))


def _defining(home: str, name: str) -> str:
    """Return the module that assigns a name, which the package `home` passes on."""
    if kind_of(getattr(importlib.import_module(home), name)) != "value":
        return home
    inside = [module for module in sorted(sys.modules) if module == home or module.startswith(f"{home}.")]
    return next(module for module in inside if name in value_docs(module))


def _of_testing(name: str) -> str:
    value = getattr(penstock.testing, name)
    return _page_of(name, value, "penstock.testing", value.__module__, TESTING_EXAMPLES[name])


def _of_returned(name: str) -> str:
    return _page_of(name, _returned(name), RETURNED[name], RETURNED[name], RETURNED_EXAMPLES[name])


def _of_module(module: str) -> str:
    loaded = importlib.import_module(module)
    parts = [
        f"\n## {kind_of(getattr(loaded, name))} `{name}`\n"
        + described(name, getattr(loaded, name), _defining(module, name), "###")
        for name in modules()[module]
    ]
    head = f"# `{module}`\n\nFor [packages of your own](../../extending.md). [In use]({GUIDES[module]}).\n"
    return head + "".join(parts)


PAGES: Mapping[str, Callable[[], str]] = {
    **{file_of(name, getattr(penstock, name)): partial(_of_penstock, name) for name in penstock.__all__},
    **{
        file_of(name, getattr(penstock.testing, name)): partial(_of_testing, name)
        for name in penstock.testing.__all__
    },
    **{file_of(name, _returned(name)): partial(_of_returned, name) for name in RETURNED},
    **{f"{module}.md": partial(_of_module, module) for module in modules()},
}
"""The pages of docs/reference/python/."""
