"""Runs for tests of task executors."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from penstock.run.task_executors import Run, RunLog, TaskReadyEvent
from penstock.testing.scenarios import ScenarioAction

Lines = list[tuple[str, str]]


def run_of(
    what: Callable[..., Any] | dict[str, Any] | None,
    params: dict[str, Any] | None = None,
    *,
    options: dict[str, Any] | None = None,
    attempt: int = 1,
    **fields: Any,
) -> tuple[Run, Lines]:
    """A run of a function, or of an action with these options, and the lines that it logs."""
    function = what if callable(what) else None
    action = ScenarioAction(
        "test.action",
        function,
        is_coroutine=inspect.iscoroutinefunction(function),
        options=what if isinstance(what, dict) else options or {},
    )
    lines: Lines = []
    id = uuid4()
    event = TaskReadyEvent(id, attempt, 3, "public::test::action", "test.action", root=id)
    log = RunLog(lambda stream, line: lines.append((stream, line)))
    return Run(event, params or {}, action, log, **{"grace": 5.0, **fields}), lines


async def until(true: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something is so; it is an error if it never is."""
    for _ in range(int(seconds / 0.01)):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")
