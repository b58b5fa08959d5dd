"""The errors that a user's code raised, told apart from the end of its coroutine from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from weakref import ref


def ends_from_outside(error: BaseException, task: asyncio.Task[Any] | None, requested: int = 0) -> bool:
    """Return whether an error ends a coroutine of `task` from outside, and was not raised by its code.

    A cancellation comes from outside if more than `requested` cancellations of the task are open. GeneratorExit does
    if Python closes the coroutine, which is not the running one then.
    """
    if isinstance(error, asyncio.CancelledError):
        return task is None or task.cancelling() > requested
    return isinstance(error, GeneratorExit) and (task is None or _running_task() is not task)


def task_reference() -> Callable[[], asyncio.Task[Any] | None]:
    """Return a weak reference to the calling task. A coroutine that held its own task would be a circle of objects."""
    task = asyncio.current_task()
    return ref(task) if task is not None else lambda: None


def _running_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop runs
        return None
