"""The stored form of the state of a run: JSON text."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import orjson

from penstock.engine.state import FanOut, KeptTask, TaskState, WorkflowState

_FIELDS = {field.name: field for field in fields(TaskState)}
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
    fields = orjson.loads(text)
    outcome = fields.pop("outcome")
    return WorkflowState(
        **{**fields, "due": deque(fields["due"])},
        outcome=None if outcome is None else (outcome[0], outcome[1]),
    )


def dump_task_state(task: TaskState) -> str:
    """Return the state of a task as JSON. Fields with their default values are omitted, since most states are small."""
    written: dict[str, Any] = {}
    for name in _FIELDS:
        value = getattr(task, name)
        if value == getattr(_DEFAULT, name):
            continue
        if name == "fan":
            value = {field.name: getattr(value, field.name) for field in fields(FanOut)}
            value["settled"] = bytes(value["settled"]).hex()
            if not value["cancelled"]:
                del value["cancelled"]
        elif name == "kept":
            value = {field.name: getattr(value, field.name) for field in fields(KeptTask)}
            value["items"] = bytes(value["items"]).hex()
        elif name == "named":
            value = [[source, outcome] for source, outcome in value.items()]
        written[name] = value
    return orjson.dumps(written).decode()


def load_task_state(text: str) -> TaskState:
    fields: Mapping[str, Any] = orjson.loads(text)
    read = dict(fields)
    if "fan" in read:
        read["fan"] = FanOut(**{**read["fan"], "settled": bytearray.fromhex(read["fan"]["settled"])})
    if "kept" in read:
        read["kept"] = KeptTask(**{**read["kept"], "items": bytes.fromhex(read["kept"]["items"])})
    if "named" in read:
        read["named"] = dict(read["named"])
    return TaskState(**read)
