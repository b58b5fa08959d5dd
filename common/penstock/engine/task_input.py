"""What a task is given when it starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.engine.decision import Start
from penstock.engine.plan import Compiled
from penstock.errors import ExpressionError
from penstock.language.durations import seconds
from penstock.language.expressions import condition, equality


def start_of(compiled: Compiled, item: int | None, names: Mapping[str, Any]) -> Start:
    """The start of a task, or of one of its items. Raises ExpressionError."""
    node, step, render = compiled.node, compiled.node.step, compiled.render
    body: Any
    if step.inquiry is not None:
        body = {
            field: render[f"inquiry.{field}"](names) if f"inquiry.{field}" in render else None
            for field in ("prompt", "assignee", "default")
        }
    elif step.wait_for_event is not None:
        body = _event(step.wait_for_event.filter, names)
    else:
        body = input_of(compiled, names)
    delay = 0.0
    if "delay" in render:
        try:
            delay = max(0.0, seconds(render["delay"](names)))
        except ValueError as error:
            raise ExpressionError(f"task `{node.name}`, delay: {error}") from None
    route = render["route"](names) if "route" in render else None
    if route is not None and not isinstance(route, str):
        raise ExpressionError(f"task `{node.name}`, route: it gives a {type(route).__name__}, not a name")
    return Start(node.index, node.name, item, step, body, delay, route)


def input_of(compiled: Compiled, names: Mapping[str, Any]) -> dict[str, Any]:
    """The input of a task. Raises ExpressionError."""
    found = compiled.render["input"](names) if "input" in compiled.render else {}
    if not isinstance(found, dict):
        raise ExpressionError(
            f"task `{compiled.node.name}`, input: it gives a {type(found).__name__}, not a mapping",
            hint="The input is a mapping of parameter names to values.",
        )
    return found


def _event(filter: str | None, names: Mapping[str, Any]) -> dict[str, Any]:
    """A filter is evaluated when an event comes, with the values that its names have now. Where it asks that something
    of the event (at `path`) equals a text or a number, the `key` of that is what events are compared by first."""
    bound: dict[str, Any] = {}
    if filter is not None:
        used = condition(filter).names
        for root in used.roots & names.keys():
            whole = used.whole(root) or not isinstance(names[root], Mapping)
            bound[root] = (
                names[root]
                if whole
                else {key: names[root][key] for key in used.under(root) if key in names[root]}
            )
        same = equality(filter, "event")
        key = None if same is None else same.key(names)
        if same is not None and key is not None:
            return {"filter": filter, "bound": bound, "path": list(same.path), "key": key}
    return {"filter": filter, "bound": bound}


def matches(filter: str | None, bound: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Whether an event is the one that a task waits for. Raises ExpressionError."""
    return filter is None or condition(filter)({**bound, "event": event})
