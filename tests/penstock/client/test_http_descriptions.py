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
