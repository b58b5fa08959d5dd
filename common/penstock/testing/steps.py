"""The steps of a simulation: one for each attempt of an action, and one for each wait."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from penstock.run.progress import Progress


@dataclass(slots=True)
class Step:
    """One attempt of an action, or one wait for an answer or an event."""

    path: str
    """The task's name; `ship.pack` of the task `pack` of the workflow that the task `ship` runs; the action's name, if it was
    started by itself."""
    action: str
    """The action's ref; `inquiry` or `wait_for_event` of a wait."""
    attempt: int
    """1 for the first. A wait has one."""
    input: dict[str, Any]
    """The parameters, checked and with their defaults; of a wait what it asks, or waits for."""
    began_at: datetime
    item: int | None = None
    """Which item of a fan-out, from 0; None of other tasks."""
    status: str = "running"
    """How it ended: completed, failed, timeout, lost, deferred, cancelled; waiting, while it asks; running."""
    result: Any = None
    error: dict[str, Any] | None = None
    """`type` and `message` of what it failed with."""
    ended_at: datetime | None = None
    progress: list[Progress] = field(default_factory=list)
    """What it said of how far it is: `done`, `text`."""
    log: list[str] = field(default_factory=list)
    """What it wrote with `current().log(...)`."""
