"""The conversion of the API's description of an execution to the one that `Client.described` returns."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from typing import Any

from pydantic import TypeAdapter

from penstock.client.http_subjects import AT_FIRST_USE
from penstock.language.workflows.progress import TaskProgress
from penstock.operate.durable_steps import Step
from penstock.store.executions.execution_list import ListedWait

_STEPS = TypeAdapter(list[Step], config=AT_FIRST_USE)
_WAIT = TypeAdapter(ListedWait | None, config=AT_FIRST_USE)
INSTANTS = ("created_at", "ready_at", "since", "not_before", "finished_at")


def described_execution(execution: dict[str, Any]) -> dict[str, Any]:
    """Return the API's description of an execution as `Client.described` returns it: with instants, durations, steps and the
    tree of tasks. Its `graph` is not in the answer."""
    instants = {name: _instant(execution[name]) for name in INSTANTS}
    attempts = [
        {
            **entry,
            "started_at": _instant(entry["started_at"]),
            "ended_at": _instant(entry["ended_at"]),
            "duration": None if entry["duration"] is None else timedelta(seconds=entry["duration"]),
        }
        for entry in execution["attempts"]
    ]
    commands = [
        {**entry, "created_at": _instant(entry["created_at"]), "obeyed_at": _instant(entry["obeyed_at"])}
        for entry in execution["told"]
    ]
    item = -1 if execution["item"] is None else execution["item"]
    tasks = [_task(task) for task in execution["tasks"]]
    fields = {
        name: value for name, value in execution.items() if name != "critical_path"
    }  # left out, since each task says whether it is on the path
    return {
        **fields,
        **instants,
        "item": item,
        "attempts": attempts,
        "told": commands,
        "tasks": tasks,
        "steps": _STEPS.validate_python(execution["steps"]),
        # An API of an older version does not send these two.
        "waits_for": _WAIT.validate_python(execution.get("waits_for")),
        "paused": execution.get("paused", False),
        "graph": None,
    }


_TASK_FIELDS = frozenset(field.name for field in dataclasses.fields(TaskProgress)) - {
    "begun",
    "ended",
    "inside",
}


def _task(node: dict[str, Any]) -> TaskProgress:
    # An API of a newer version may send more fields.
    known_fields = {name: value for name, value in node.items() if name in _TASK_FIELDS}
    began, finished = _instant(node["begun"]), _instant(node["ended"])
    inside = [_task(task) for task in node["tasks"]]
    return TaskProgress(**known_fields, begun=began, ended=finished, inside=inside)


def _instant(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)
