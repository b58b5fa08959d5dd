"""The description of an execution over HTTP is the one that the client of the database returns."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from penstock.client.http_descriptions import INSTANTS, described_execution
from penstock.operate.awaited_steps import StepWait
from penstock.operate.durable_steps import Step

AT = datetime(2030, 1, 31, 9, tzinfo=UTC)
WAIT = {"since": AT.isoformat(), "until": None, "awaits": "the signal paid"}
STEP: dict[str, Any] = {
    "label": "paid", "name": "paid", "ordinal": 1, "branch": [], "kind": "signal", "status": "started", "tries": 0,
    "took": 0.0, "at": AT.isoformat(), "result": None, "error": None, "execution": None, "wait": WAIT,
}  # fmt: skip


def test_steps_of_a_function_are_objects() -> None:
    answer: dict[str, Any] = {name: AT.isoformat() for name in INSTANTS}
    answer |= {"attempts": [], "told": [], "tasks": [], "item": None, "steps": [STEP]}
    [step] = described_execution(answer)["steps"]
    assert isinstance(step, Step)
    assert (step.at, step.wait) == (AT, StepWait(AT, None, "the signal paid"))


def test_field_of_a_newer_api_is_left_out() -> None:
    """An older API sends fewer fields of a task, and a newer one more."""
    answer: dict[str, Any] = {name: AT.isoformat() for name in INSTANTS}
    task: dict[str, Any] = {
        "name": "ship",
        "does": "shop.ship",
        "after": [],
        "status": "skipped",
        "begun": None,
        "ended": None,
    }
    answer |= {"attempts": [], "told": [], "item": None, "steps": [], "tasks": [{**task, "tasks": []}]}
    [older] = described_execution(answer)["tasks"]
    assert (older.name, older.skipped_because) == ("ship", None)
    newer = {
        **task,
        "skipped_because": "charge did not succeed",
        "of_the_next_version": 1,
        "tasks": [answer["tasks"][0]],
    }
    [outer] = described_execution({**answer, "tasks": [newer]})["tasks"]
    assert outer.skipped_because == "charge did not succeed"
    assert [inner.name for inner in outer.inside] == ["ship"]
