"""The input of a task at its start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.engine.decision import Start
from penstock.engine.plan import CompiledTask
from penstock.errors import ExpressionError
from penstock.language.expressions import SECRETS
from penstock.language.rules.event_filter import bind_filter
from penstock.language.terms.durations import seconds


def make_start(compiled: CompiledTask, item: int | None, names: Mapping[str, Any]) -> Start:
    """Return the start of a task, or of one of its items. Raises ExpressionError if an expression fails, or gives a
    value of another type."""
    node, step, render = compiled.node, compiled.node.step, compiled.render
    body: Any
    if step.inquiry is not None:
        body = {
            field: render[f"inquiry.{field}"](names) if f"inquiry.{field}" in render else None
            for field in ("prompt", "assignee", "default")
        }
    elif step.wait_for_event is not None:
        body = bind_filter(step.wait_for_event.filter, names)
    else:
        body = render_input(compiled, names)
    delay = 0.0
    if "delay" in render:
        try:
            delay = max(0.0, seconds(render["delay"](names)))
        except ValueError as error:
            raise ExpressionError(f"task `{node.name}`, delay: {error}") from None
    route = render["route"](names) if "route" in render else None
    if route is not None and not isinstance(route, str):
        raise ExpressionError(
            f"task `{node.name}`, route: its value has the type {type(route).__name__}, and must be text"
        )
    return Start(node.index, node.name, item, step, body, delay, route)


def render_input(compiled: CompiledTask, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rendered input of a task. Raises ExpressionError if an expression fails, or the input is not a
    mapping."""
    inputs = compiled.render["input"]({**names, "secrets": SECRETS}) if "input" in compiled.render else {}
    if not isinstance(inputs, dict):
        raise ExpressionError(
            f"task `{compiled.node.name}`, input: its value has the type {type(inputs).__name__}, and must be a mapping",
            hint="The input is a mapping of parameter names to values.",
        )
    return inputs
