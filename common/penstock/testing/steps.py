"""The steps of a simulation: each attempt of an action, and each wait."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from penstock.run.progress import Progress


@dataclass(slots=True)
class Step:
    """One attempt of an action, or one wait for an answer or an event."""

    path: str
    """The path: the task's name, or `ship.pack` for the task `pack` of the workflow that the task `ship` runs, or the
    action's ref if it was started directly."""
    action: str
    """The action's ref, or `inquiry` or `wait_for_event` for a wait."""
    attempt: int
    """The number of the attempt, from 1. A wait has one."""
    input: dict[str, Any]
    """The checked parameters with their defaults. For a wait, its inquiry or the event that it waits for."""
    began_at: datetime
    item: int | None = None
    """The item of a fan-out, from 0, or None for other tasks."""
    status: str = "running"
    """The status: completed, failed, timeout, lost, deferred or cancelled, or before its end waiting or running."""
    result: Any = None
    error: dict[str, Any] | None = None
    """The `type` and `message` of the error, or None."""
    ended_at: datetime | None = None
    progress: list[Progress] = field(default_factory=list)
    """The progress reports (`done`, `text`)."""
    log: list[str] = field(default_factory=list)
    """The lines that it printed, and that it logged with `current().log(...)` or the logging module."""
