"""The stored form of the errors of tasks, fan-outs and workflows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from penstock.bounds import MESSAGE_CAP
from penstock.engine.facts import TaskResult
from penstock.engine.state import FanOut
from penstock.errors import PenstockError
from penstock.run.cut_texts import cut_end
from penstock.run.outcomes import text
from penstock.run.root_cause import cause_inside

ERROR_LIMIT = 24 * 1024
"""The bound on a task's error inside its workflow's error, in bytes of JSON. A message and a traceback fit."""

SHOWN_CHARACTERS = 300
"""The number of characters of an item's error that the error of its fan-out shows."""


def describe_error(error: PenstockError) -> dict[str, Any]:
    """Return the stored form of an error that the engine itself found."""
    description = {"type": type(error).__name__, "message": error.message}
    return description | ({"hint": error.hint} if error.hint else {})


def describe_failed_items(fan: FanOut, errors: Mapping[int, TaskResult]) -> dict[str, Any]:
    """Return the error of a fan-out. `errors` are the ends of the first failed executions, by item, in the order in
    which they ended. Items that were cancelled because other items had failed are counted separately."""
    failed, unstarted = fan.failed - fan.cancelled, fan.total - fan.begun
    message = f"{failed} of {fan.total} items failed"
    if fan.cancelled:
        message += f", {fan.cancelled} were cancelled"
    if unstarted:
        message += f", {unstarted} were not started"
    named = [
        cut_end(f"item {item}: {_message(end.error)}", SHOWN_CHARACTERS)
        for item, end in list(errors.items())[:failed]
    ]
    if named:
        unnamed = failed - len(named)
        message += ": " + "; ".join(named) + (f"; and {unnamed} more" if unnamed > 0 else "")
    described: dict[str, Any] = {"type": "ItemsFailed", "message": message}
    if fan.first_error:
        item = fan.first_error.get("item")
        described |= {
            "first": fan.first_error,
            "cause": cause_inside("" if item is None else f"[{item}]", fan.first_error),
        }
    elif named:
        item, end = next(iter(errors.items()))
        described["cause"] = cause_inside(f"[{item}]", end.error, end.attempt)
    return described


def describe_failed_tasks(
    ends: Mapping[str, TaskResult], unhandled: int, faults: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the error of a workflow: its tasks with unhandled failures, in the order in which they failed, and its
    transitions in error. The first one is the cause."""
    messages = [f"{name}: {_message(end.error)}" for name, end in ends.items()]
    if unhandled > len(messages):
        messages.append(f"and {unhandled - len(messages)} more")
    messages += [str(fault["message"]) for fault in faults]
    kind = "TaskFailed" if unhandled else "TransitionFailed"
    error: dict[str, Any] = {"type": kind, "message": text("; ".join(messages), MESSAGE_CAP)}
    if ends:
        error["tasks"] = {name: _bounded(end.error) for name, end in ends.items()}
        name, first = next(iter(ends.items()))
        error["cause"] = cause_inside(name, first.error, first.attempt)
    elif faults:
        error["cause"] = cause_inside("", faults[0])
    return error | ({"transitions": [dict(fault) for fault in faults]} if faults else {})


def _bounded(error: Any) -> Any:
    """Return a task's error for its workflow's error, without nested task errors if they are over ERROR_LIMIT.
    Otherwise each enclosing workflow could multiply the size by ten."""
    if not isinstance(error, Mapping) or len(orjson.dumps(error)) <= ERROR_LIMIT:
        return error
    short = {key: text(str(error[key]), MESSAGE_CAP) for key in ("type", "message", "hint") if error.get(key)}
    return short | ({"cause": error["cause"]} if "cause" in error else {})


def _message(error: Any) -> str:
    if isinstance(error, Mapping):
        kind, message = error.get("type"), error.get("message")
        return ": ".join(str(part) for part in (kind, message) if part)
    return "failed" if error is None else str(error)
