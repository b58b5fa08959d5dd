"""An event loop that continues after `sys.exit()` in one of its tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, TypeVar

from penstock.run.context import CURRENT
from penstock.run.run import Run

T = TypeVar("T")


def make_task(
    loop: asyncio.AbstractEventLoop,
    coroutine: Coroutine[Any, Any, T] | Generator[Any, None, T],
    /,
    **options: Any,
) -> asyncio.Task[T]:
    """Return a new task of this loop. A task that is created inside a run belongs to it. If the task exits, it ends
    the attempt, whether or not the function awaits it."""
    task = asyncio.Task(coroutine, loop=loop, **options)
    context = options.get("context")
    run = CURRENT.get() if context is None else context.get(CURRENT)
    if run is not None:
        task.add_done_callback(partial(_done, run))
    return task


def _done(run: Run, task: asyncio.Task[Any]) -> None:
    error = task._exception  # exception() marks an error as retrieved, and asyncio would not log it then
    if isinstance(error, SystemExit | KeyboardInterrupt):
        run.exit(error)


def run_to_end(
    main: Coroutine[Any, Any, T], new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> T:
    """Run `main` on a new event loop and return its result. Raise SystemExit and KeyboardInterrupt only if `main`
    does.

    A task or a callback that raises one of these stops `run_until_complete`. An action's task that calls sys.exit()
    must end its attempt and not the process, so the loop is then run again.
    """
    with asyncio.Runner(loop_factory=new_loop) as runner:
        loop = runner.get_loop()
        asyncio.set_event_loop(loop)
        loop.set_task_factory(make_task)
        task = loop.create_task(main)
        while True:
            try:
                return loop.run_until_complete(task)
            except (SystemExit, KeyboardInterrupt) as error:
                if task.done():
                    raise
                loop.call_exception_handler(
                    {
                        "message": f"{type(error).__name__} in a task or a callback of an action",
                        "exception": error,
                    }
                )
