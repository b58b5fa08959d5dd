"""Workflows for tests, from the part of the YAML that matters."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

from penstock.language.workflows.serialization import from_yaml
from penstock.testing.memory_workflow import MemoryWorkflow as World


def run(tasks: str, more: str = "", **parameters: Any) -> World:
    """A run of a workflow with these tasks that has begun. `more` is what stands beside `tasks`."""
    text = f"workflow: t.w\n{dedent(more)}\ntasks:\n{indent(dedent(tasks), '  ')}"
    return World(from_yaml(text), parameters).begin()


def names(world: World) -> list[str]:
    """Return the open executions by name; items as name and number."""
    return [name if item is None else f"{name}{item}" for name, item in world.open]
