"""Daemon threads that take calls one by one.

`concurrent.futures` joins its threads when the interpreter ends. There a function that hangs would keep a worker from
ever stopping.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")


class DaemonThreads:
    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._busy = 0
        self._threads = 0

    def call(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Call `function` in one of the threads. The future completes when the function returns. Its error is the cause of
        the future's RuntimeError, as a future cannot hold every error. Cancelling the future does not stop the thread."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(complete: Callable[[], None]) -> None:
            self._busy -= 1
            if not future.done():
                complete()

        def work() -> None:
            try:
                complete = partial(future.set_result, function())
            except BaseException as error:
                complete = partial(future.set_exception, _raised_by(error))
            with suppress(RuntimeError):  # the loop is closed, and no task waits any more
                loop.call_soon_threadsafe(settle, complete)

        self._busy += 1
        if self._busy > self._threads:
            self._threads += 1
            threading.Thread(target=self._serve, name=f"{self._name}-{self._threads}", daemon=True).start()
        self._calls.put(work)
        return future

    def dismiss(self) -> None:
        """End the threads, each after its current call."""
        for _ in range(self._threads):
            self._calls.put(None)
        self._threads = 0

    def _serve(self) -> None:
        while (work := self._calls.get()) is not None:
            work()


def _raised_by(error: BaseException) -> RuntimeError:
    raised = RuntimeError(f"a call in a thread raised {type(error).__name__}: {error}")
    raised.__cause__ = error
    return raised
