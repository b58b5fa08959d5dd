"""The stored form of the errors of tasks, fan-outs and workflows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from penstock.bounds import MESSAGE_CAP
from penstock.engine.facts import TaskResult
from penstock.errors import PenstockError
from penstock.run.outcomes import text

ERROR_LIMIT = 24 * 1024
"""The bound on a task's error inside its workflow's error, in bytes of JSON. A message and a traceback fit."""

SHOWN_CHARACTERS = 300
"""The number of characters of an item's error that the error of its fan-out shows."""


def describe_error(error: PenstockError) -> dict[str, Any]:
    """Return the stored form of an error that the engine itself found."""
    description = {"type": type(error).__name__, "message": error.message}
    return description | ({"hint": error.hint} if error.hint else {})


def describe_failed_items(
    failed: int, total: int, skipped: int, first: Any, errors: Mapping[int, Any]
) -> dict[str, Any]:
    """Return the error of a fan-out. `first` is the first error that the engine itself found. `errors` are the errors
    of the first failed executions, by item."""
    message = f"{failed} of {total} items failed" + (f", {skipped} were not started" if skipped else "")
    if errors:
        named = [
            f"item {item}: {_message(error)}"[:SHOWN_CHARACTERS] for item, error in sorted(errors.items())
        ]
        unnamed = failed - len(named)
        message += ": " + "; ".join(named) + (f"; and {unnamed} more" if unnamed > 0 else "")
    return {"type": "ItemsFailed", "message": message} | ({"first": first} if first else {})


def describe_failed_tasks(
    ends: Mapping[str, TaskResult], unhandled: int, faults: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the error of a workflow: its tasks with unhandled failures, and its transitions in error."""
    messages = [f"{name}: {_message(end.error)}" for name, end in ends.items()]
    if unhandled > len(messages):
        messages.append(f"and {unhandled - len(messages)} more")
    messages += [str(fault["message"]) for fault in faults]
    kind = "TaskFailed" if unhandled else "TransitionFailed"
    error: dict[str, Any] = {"type": kind, "message": text("; ".join(messages), MESSAGE_CAP)}
    if ends:
        error["tasks"] = {name: _bounded(end.error) for name, end in ends.items()}
    return error | ({"transitions": [dict(fault) for fault in faults]} if faults else {})


def _bounded(error: Any) -> Any:
    """Return a task's error for its workflow's error, without nested task errors if they are over ERROR_LIMIT.
    Otherwise each enclosing workflow could multiply the size by ten."""
    if not isinstance(error, Mapping) or len(orjson.dumps(error)) <= ERROR_LIMIT:
        return error
    return {key: text(str(error[key]), MESSAGE_CAP) for key in ("type", "message", "hint") if error.get(key)}


def _message(error: Any) -> str:
    if isinstance(error, Mapping):
        kind, message = error.get("type"), error.get("message")
        return ": ".join(str(part) for part in (kind, message) if part)
    return "failed" if error is None else str(error)
