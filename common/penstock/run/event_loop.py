"""An event loop that outlives `sys.exit()` in what it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_to_end(
    main: Coroutine[Any, Any, T], new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> T:
    """Run `main` on a loop of its own and return its result. Raise SystemExit and KeyboardInterrupt only where `main` does.

    A task or a callback that raises one of these takes its loop out of `run_until_complete`, while the task keeps the exception
    for its waiter. An action's task that calls sys.exit() must end its attempt and not the process, so the loop goes on."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        loop = runner.get_loop()
        asyncio.set_event_loop(loop)
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
