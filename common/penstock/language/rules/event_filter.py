"""The filter of a task that waits for an event: its stored form, and the match with an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import DefinitionError
from penstock.language.expressions import condition, equality
from penstock.language.rules.event_rules import EVENT
from penstock.language.rules.parameter_checks import names_of, unknown_names


def bind_filter(filter: str | None, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored form of a filter. `bound` has the current values of its names, since it is evaluated later,
    for each event.

    If the filter requires that the event's value at `path` equals a text or a number, `key` is that value's key. Events
    are then looked up by the key first. Raises ExpressionError if the filter is not a valid condition.
    """
    bound: dict[str, Any] = {}
    if filter is None:
        return {"filter": filter, "bound": bound}
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


def check_filter(
    filter: str | None, names: Mapping[str, Any], payload_schema: Mapping[str, Any] | None
) -> None:
    """Check that a filter uses only `names` and what an event with such a payload has. Raises DefinitionError otherwise,
    since no event would match, and the task would wait for ever. Raises ExpressionError if the filter is not a valid
    condition."""
    if filter is None:
        return
    event = {**dict.fromkeys(EVENT), "payload": names_of(payload_schema)}
    problem = next(unknown_names(condition(filter).names, {**dict.fromkeys(names), "event": event}), None)
    if problem is not None:
        raise DefinitionError(f"the condition `{filter}` of a wait: {problem.message}", hint=problem.hint)


def matches(filter: str | None, bound: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Return whether a task with this filter waits for this event. Raises ExpressionError if the filter fails for this
    event."""
    return filter is None or condition(filter)({**bound, "event": event})
