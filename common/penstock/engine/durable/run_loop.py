"""The event loop of a durable function. The loop runs the function's tasks until all of them wait. It has no clock, and
no input except the results that are delivered to the tasks.

No other task of the worker runs on this loop. So the loop knows when all tasks of the function wait. The order in which
they run depends only on the order in which results are delivered."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, NoReturn

from penstock.engine.durable.branches import Branch, BranchTask
from penstock.engine.durable.refusals import refuse, refuse_unordered_waits
from penstock.errors import DefinitionError

TURNS_LIMIT = 100_000
"""Turns of the loop after which the tasks of a function are taken to spin: they never wait for anything that can come."""


class RunLoop(asyncio.AbstractEventLoop):
    """The event loop of one attempt. `root` is the branch of the function itself."""

    def __init__(self) -> None:
        self.root = Branch("")
        self._ready: deque[asyncio.Handle] = deque()
        self._tasks: list[BranchTask] = []
        self._prune_at = 64

    # -- the run of tasks ----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the tasks until all of them wait. Raises DefinitionError for tasks that never do."""
        if not self._ready:
            return
        outside, hooks = asyncio._get_running_loop(), sys.get_asyncgen_hooks()
        asyncio._set_running_loop(self)
        sys.set_asyncgen_hooks(None, None)
        try:
            self._run()
        finally:
            sys.set_asyncgen_hooks(*hooks)
            asyncio._set_running_loop(outside)

    def _run(self) -> None:
        for _ in range(TURNS_LIMIT):
            if not self._ready:
                return
            for _ in range(len(self._ready)):
                handle = self._ready.popleft()
                if not handle.cancelled():
                    try:
                        handle._run()
                    except (SystemExit, KeyboardInterrupt):
                        """The task keeps it as its error: it must not end the worker."""
        raise DefinitionError(
            f"the asyncio tasks of the function ran {TURNS_LIMIT:,} times without waiting for a step, a timer or a signal",
            hint="Await a call of ctx or another task. Do not call asyncio.sleep(0) in a loop.",
        )

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        refuse_unordered_waits()
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: Context | None = None
    ) -> BranchTask:
        """Make a task, in a new branch of the task that makes it. The branch gets its number now and not when the task
        first runs, so that the number is the same in every attempt."""
        maker = asyncio.current_task(self)
        parent = maker.branch if isinstance(maker, BranchTask) else self.root
        return self.start(coro, parent.next(), name=name, context=context)

    def start(
        self,
        coro: Coroutine[Any, Any, Any],
        branch: Branch,
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> BranchTask:
        """Make a task of this branch."""
        task = BranchTask(coro, branch, loop=self, name=name, context=context)
        self._tasks.append(task)
        if len(self._tasks) > self._prune_at:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._prune_at = 2 * len(self._tasks) + 64
        return task

    def open_tasks(self) -> list[BranchTask]:
        """Return the tasks that are not done, in the order in which they were made."""
        self._tasks = [task for task in self._tasks if not task.done()]
        return list(self._tasks)

    def clear(self) -> None:
        """Forget all tasks. Unfinished ones never run again, and keep no object alive."""
        for task in self.open_tasks():
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._tasks.clear()
        self._ready.clear()

    # -- the interface for asyncio ----------------------------------------------------------------------------------

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def time(self) -> float:
        return 0.0

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Drop errors that no task awaits, such as those of branches that the function left."""

    def get_exception_handler(self) -> None:
        return None

    def get_task_factory(self) -> None:
        return None

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any, **_: Any) -> NoReturn:  # type: ignore[override]
        refuse(
            "a timer of asyncio (sleep, wait_for, timeout)",
            "ctx.sleep(...), ctx.timeout(...) or ctx.first(...)",
        )

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any, **_: Any) -> NoReturn:  # type: ignore[override]
        self.call_later(when, callback)


def _refused(method: str) -> Callable[..., NoReturn]:
    def refused(self: RunLoop, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(f"the event loop's {method}", "a step: ctx.step(name, function)")

    refused.__name__ = method
    return refused


for _method in (
    "run_in_executor", "call_soon_threadsafe", "getaddrinfo", "getnameinfo", "create_connection", "create_server",
    "create_unix_connection", "create_unix_server", "create_datagram_endpoint", "connect_accepted_socket", "sendfile",
    "start_tls",
    "connect_read_pipe", "connect_write_pipe", "subprocess_shell", "subprocess_exec", "add_reader", "remove_reader", "add_writer",
    "remove_writer", "sock_recv", "sock_recv_into", "sock_recvfrom", "sock_sendall", "sock_sendto", "sock_connect", "sock_accept",
    "sock_sendfile", "add_signal_handler", "remove_signal_handler", "set_task_factory", "set_exception_handler", "run_forever",
    "run_until_complete", "set_debug",
):  # fmt: skip
    setattr(RunLoop, _method, _refused(_method))
