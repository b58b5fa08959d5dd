"""The branches of a durable function: the function itself, and each asyncio task that it makes. The order in which the
tasks are made identifies the branches."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Self

from penstock.engine.durable.refusals import refuse_unordered_waits
from penstock.errors import DefinitionError


class Branch:
    """A line of a function's code. `path` is `` for the function, `2/` for the second task that it made, `2/1/` for the
    first task of that one. `asked` counts its calls, `names` counts them by name, and `undos` counts its registrations
    with on_failure by name."""

    __slots__ = ("asked", "names", "path", "tasks", "undos")

    def __init__(self, path: str) -> None:
        self.path = path
        self.asked = 0
        self.tasks = 0
        self.names: Counter[str] = Counter()
        self.undos: Counter[str] = Counter()

    def next(self) -> Branch:
        """Return the branch of the next task that this branch makes."""
        self.tasks += 1
        return Branch(f"{self.path}{self.tasks}/")


class BranchTask(asyncio.Task[Any]):
    """A task of a durable function, with its branch."""

    def __init__(
        self,
        coro: Coroutine[Any, Any, Any],
        branch: Branch,
        *,
        loop: asyncio.AbstractEventLoop,
        name: str | None,
        context: Context | None,
    ) -> None:
        super().__init__(coro, loop=loop, name=name, context=context)
        self.branch = branch

    def add_done_callback(self, fn: Callable[[Self], object], /, *, context: Context | None = None) -> None:
        refuse_unordered_waits()
        super().add_done_callback(fn, context=context)


def branch_here() -> Branch:
    """Return the branch of the task that calls. Raises DefinitionError outside of a durable function."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # the calling thread has no event loop
        task = None
    if isinstance(task, BranchTask):
        return task.branch
    root = getattr(asyncio._get_running_loop(), "root", None)
    if task is None and isinstance(root, Branch):  # a callback of a future runs outside of any task
        return root
    raise DefinitionError(
        "the context of a durable function is used outside of it",
        hint="Use it in the function itself, and in tasks that asyncio.create_task, gather or TaskGroup makes.",
    )
