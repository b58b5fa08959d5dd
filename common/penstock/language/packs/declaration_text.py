"""Declarations as text: a rule or a schedule as a YAML file or as Python, to be kept with the other definitions."""

from __future__ import annotations

from typing import Any

from penstock.extras import needed
from penstock.language.definitions.rule import Rule
from penstock.language.definitions.schedule import Schedule

SECTIONS = {"rule": "rules", "schedule": "schedules"}
"""The section of a pack for each kind of declaration."""


def yaml_of(declaration: Rule | Schedule) -> str:
    """Return a YAML file with this declaration, which `penstock apply` reads as an equal one. Raises MissingExtra if
    the package for YAML is not installed."""
    with needed():
        from penstock.language.workflows import safe_yaml
    options = declaration.body()
    pack, _, name = options.pop("ref").partition(".")
    return safe_yaml.write({"name": pack, SECTIONS[declaration.kind]: {name: options}})


def python_of(declaration: Rule | Schedule) -> str:
    """Return a Python file with this declaration."""
    options = declaration.body()
    called = type(declaration).__name__
    names = f"{called}, Window" if "window" in options else called
    lines = [f"from penstock import {names}", "", f"{called}(", f"    {options.pop('ref')!r},"]
    return "\n".join(
        [*lines, *(f"    {name}={_python(name, value)}," for name, value in options.items()), ")", ""]
    )


def _python(name: str, value: Any) -> str:
    """Return the value of an option as Python."""
    if name == "window":
        return f"Window({', '.join(f'{part}={of!r}' for part, of in value.items())})"
    return repr(value)
