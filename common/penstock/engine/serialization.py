"""The stored form of the state of a run: JSON text. A replica of the next release may write fields that this release
does not know. This release ignores such fields, and drops them when it writes the state. So a new field needs a default
with which the run stays correct."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import orjson

from penstock.engine.state import FanOut, KeptTask, TaskState, WorkflowState

T = TypeVar("T")
_PARTS: tuple[type[Any], ...] = (WorkflowState, TaskState, FanOut, KeptTask)
_NAMES = {part: [field.name for field in fields(part)] for part in _PARTS}
_DEFAULT = TaskState()


def dump_workflow_state(state: WorkflowState) -> str:
    written: dict[str, Any] = {
        "left": state.left,
        "open": state.open,
        "unhandled": state.unhandled,
        "phase": state.phase,
        "paused": state.paused,
        "due": list(state.due),
        "faults": state.faults,
        "outcome": state.outcome,
        "stops": state.stops,
    }
    if state.failures:
        written["failures"] = state.failures
    return orjson.dumps(written).decode()


def load_workflow_state(text: str) -> WorkflowState:
    stored = orjson.loads(text)
    outcome = stored["outcome"]
    stored |= {"due": deque(stored["due"]), "outcome": None if outcome is None else (outcome[0], outcome[1])}
    return _known(WorkflowState, stored)


def dump_task_state(task: TaskState) -> str:
    """Return the state of a task as JSON. Fields with their default values are omitted, since most states are small."""
    written: dict[str, Any] = {}
    for name in _NAMES[TaskState]:
        value = getattr(task, name)
        if value == getattr(_DEFAULT, name):
            continue
        if name == "fan":
            value = {name: getattr(value, name) for name in _NAMES[FanOut]}
            value["settled"] = bytes(value["settled"]).hex()
            if not value["cancelled"]:
                del value["cancelled"]
        elif name == "kept":
            value = {name: getattr(value, name) for name in _NAMES[KeptTask]}
            value["items"] = bytes(value["items"]).hex()
        elif name == "named":
            value = [[source, outcome] for source, outcome in value.items()]
        written[name] = value
    return orjson.dumps(written).decode()


def load_task_state(text: str) -> TaskState:
    stored = orjson.loads(text)
    if "fan" in stored:
        fan = stored["fan"]
        stored["fan"] = _known(FanOut, {**fan, "settled": bytearray.fromhex(fan["settled"])})
    if "kept" in stored:
        task = stored["kept"]
        stored["kept"] = _known(KeptTask, {**task, "items": bytes.fromhex(task["items"])})
    if "named" in stored:
        stored["named"] = dict(stored["named"])
    return _known(TaskState, stored)


def _known(part: type[T], stored: Mapping[str, Any]) -> T:
    """Return a part of the state without the stored fields that this release does not know."""
    return part(**{name: stored[name] for name in _NAMES[part] if name in stored})
