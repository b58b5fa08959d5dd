"""States as they are stored. SQL reads some of the fields by their names."""

from __future__ import annotations

from collections import deque

import orjson

from penstock.engine.serialization import (
    dump_task_state,
    dump_workflow_state,
    load_task_state,
    load_workflow_state,
)
from penstock.engine.state import FanOut, KeptTask, TaskState, WorkflowState


def test_the_state_of_a_run_comes_back_as_it_was() -> None:
    error = {"type": "X", "message": "m"}
    state = WorkflowState(5, 4, 3, "stopping", True, deque([2, 1]), [error], ("timeout", error), 2)
    text = dump_workflow_state(state)
    assert load_workflow_state(text) == state
    assert orjson.loads(text) == {
        "left": 5,
        "open": 4,
        "unhandled": 3,
        "phase": "stopping",
        "paused": True,
        "due": [2, 1],
        "faults": [error],
        "outcome": ["timeout", error],
        "stops": 2,
    }
    assert load_workflow_state(dump_workflow_state(WorkflowState(1))) == WorkflowState(1)


def test_a_task_state_round_trips_and_stores_only_unusual_fields() -> None:
    fan = FanOut(9, 8, 7, 1, True, True, 3, bytearray([255, 1]), {"type": "X"}, "abc")
    kept = KeptTask("failed", bytes([5]), 9, "abc", True, True, {"a": 1}, {"type": "Y"})
    state = TaskState(
        "open", 1, 2, 3, {4: "failed"}, True, 5, [6], True, kept, fan, True, {"b": 2}, {"type": "Z"}
    )
    assert load_task_state(dump_task_state(state)) == state
    assert dump_task_state(TaskState()) == "{}"
    assert load_task_state("{}") == TaskState()
    assert orjson.loads(dump_task_state(TaskState("open", fan=FanOut(2)))) == {
        "status": "open",
        "fan": {
            "total": 2,
            "begun": 0,
            "ended": 0,
            "failed": 0,
            "stopped": False,
            "queued": False,
            "window": 0,
            "settled": "",
            "first_error": None,
            "digest": "",
        },
    }


def test_fields_of_the_next_release_are_ignored() -> None:
    """Replicas of two releases decide on the same rows in turn."""
    run = WorkflowState(5, due=deque([2]))
    stored = orjson.loads(dump_workflow_state(run))
    assert load_workflow_state(orjson.dumps({**stored, "noted": [1]}).decode()) == run
    task = TaskState("open", fan=FanOut(2, settled=bytearray([1])), kept=KeptTask("failed", bytes([5])))
    stored = orjson.loads(dump_task_state(task))
    stored |= {part: {**stored[part], "noted": 1} for part in ("fan", "kept")}
    assert load_task_state(orjson.dumps({**stored, "noted": {"a": 1}}).decode()) == task


def test_fields_that_the_release_before_did_not_write_have_defaults() -> None:
    """Such a release knew neither `failures` of a run nor `cancelled` of a fan-out."""
    run = orjson.loads(dump_workflow_state(WorkflowState(5, failures=[3])))
    del run["failures"]
    assert load_workflow_state(orjson.dumps(run).decode()) == WorkflowState(5)
    task = orjson.loads(dump_task_state(TaskState("open", fan=FanOut(2, cancelled=1))))
    del task["fan"]["cancelled"]
    assert load_task_state(orjson.dumps(task).decode()) == TaskState("open", fan=FanOut(2))
