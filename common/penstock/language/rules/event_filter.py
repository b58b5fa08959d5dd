"""The filter of a task that waits for an event: its stored form, the match with an event, and its text for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from penstock.errors import DefinitionError, ExpressionError
from penstock.language.expressions import Comparison, Path, comparisons, condition, equality, value_at
from penstock.language.rules.event_rules import EVENT
from penstock.language.rules.parameter_checks import names_of, unknown_names
from penstock.language.terms.redaction import MASK
from penstock.run.cut_texts import cut_end

MAX_VALUE = 60
"""The maximum length of a value in the text of a filter, in characters."""
MEMBERSHIP = ("in", "not in")
"""The operators that compare with each item of a list."""


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


def filter_text(
    filter: str | None, bound: Mapping[str, Any], mask: Callable[[Any], Any] = lambda payload: payload
) -> str:
    """Return a filter for people, with the values that its names had when the wait began: `where order_id = 42`, or for a
    condition of another form ``that matches `event.payload.order_id in ids` (ids = [42, 43])``. It is empty without a filter.

    `bound` holds the values, already masked. `mask` masks the payload of an event: a value that is compared with a secret of
    the payload is hidden.
    """
    if filter is None:
        return ""
    try:
        compared = comparisons(filter, "event")
        if compared is not None:
            return "where " + " and ".join(
                f"{_path_text(comparison.path)} {comparison.operator} "
                f"{_value_text(_compared(comparison, bound, mask))}"
                for comparison in compared
            )
    except (ExpressionError, orjson.JSONEncodeError):
        """The condition cannot be evaluated on the stored values, or a value is not JSON, such as 2 ** 70. So the condition is
        shown as it is written."""
    values = "" if _reads_secret(filter, mask) else ", ".join(_bound_texts(filter, bound))
    return f"that matches `{filter}`{f' ({values})' if values else ''}"


def _path_text(path: Path) -> str:
    """Return a path below an event as text: `order_id` in the payload, `event.tenant` for another value."""
    steps = path[1:] if path[0] == "payload" and len(path) > 1 else ("event", *path)
    return _joined(steps)


def _joined(steps: Path) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")


def _value_text(value: Any) -> str:
    return cut_end(value if value == MASK else orjson.dumps(value).decode(), MAX_VALUE)


def _compared(comparison: Comparison, bound: Mapping[str, Any], mask: Callable[[Any], Any]) -> Any:
    """Return the value of a comparison, without secrets of the payload. `in` compares with each item of a list."""
    value = comparison.value(bound)
    hidden = _hidden(comparison.path, value, mask)
    if comparison.operator in MEMBERSHIP and isinstance(value, list | tuple) and hidden != MASK:
        return [_hidden(comparison.path, item, mask) for item in value]
    return hidden


def _hidden(path: Path, value: Any, mask: Callable[[Any], Any]) -> Any:
    """Return the value that a filter compares with the one at `path`, or the mask if the payload's value is secret."""
    if path[0] != "payload":
        return value
    payload = value
    for step in reversed(path[1:]):
        payload = {step: payload} if isinstance(step, str) else [payload]
    try:
        masked = value_at([step if isinstance(step, str) else 0 for step in path[1:]], mask(payload))
    except LookupError:  # the mask has replaced a whole part of the payload
        return MASK
    return masked


def _reads_secret(filter: str, mask: Callable[[Any], Any]) -> bool:
    """Return whether a filter reads a secret of the payload. Each of its other values may then be that secret."""
    paths = (path[1:] for path in condition(filter).names.paths if path[0] == "event" and len(path) > 1)
    return any(_hidden(path, "", mask) == MASK for path in paths)


def _bound_texts(filter: str, bound: Mapping[str, Any]) -> list[str]:
    """Return the names of a filter with their stored values: `ids = [42, 43]`."""
    texts = []
    for path in sorted(condition(filter).names.paths, key=str):
        try:
            value = value_at(path, bound)
        except LookupError:  # the event itself, or a name that was undefined
            continue
        texts.append(f"{_joined(path)} = {_value_text(value)}")
    return texts
