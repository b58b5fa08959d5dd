"""The base of clients with blocking methods: an event loop in a thread, and methods that wait for coroutines there."""

from __future__ import annotations

import asyncio
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from penstock.client.usable import check_usable

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")
LONGEST_END_S = 5.0
"""The seconds within which a cancelled call has to end. The loop stops without one that takes longer."""


class LoopThread:
    """A thread with an event loop, for callers in other threads. A process that was forked from this one has no such
    thread: calls there raise ClientUnusable, and `close` does nothing."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self.closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="penstock", daemon=True)
        self._thread.start()

    @property
    def is_inherited(self) -> bool:
        """Return True in a process that was forked from that of the thread."""
        return os.getpid() != self._process

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        """Return the result of a coroutine. An interrupt, such as Ctrl-C, cancels the coroutine. Raises ClientUnusable."""
        future = self._submit(work)
        try:
            return future.result()
        except CancelledError:
            check_usable(self._process, closed=self.closed)
            raise
        except BaseException:
            future.cancel()
            raise

    def _submit(self, work: Coroutine[Any, Any, R]) -> Future[R]:
        try:
            check_usable(self._process, closed=False)  # first, since the fork has copied the lock as it was
            # `close` may stop the loop between the check and the submission, and the work would never run.
            with self._lock:
                check_usable(self._process, closed=self.closed)
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        except BaseException:
            work.close()
            raise

    def close(self) -> None:
        """Stop the loop, with an error for calls that other threads still wait for."""
        if self.is_inherited:
            return
        with self._lock:
            if self.closed:
                return
            self.closed = True
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    """Cancel all other tasks of this loop, and wait until they have ended."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=LONGEST_END_S)


class Blocking(Generic[C]):
    """An object with coroutine methods. They run in the loop's thread while the caller waits."""

    _client: C
    _thread: LoopThread


class Part(Blocking[C]):
    """A part of the client, which waits in the client's thread."""

    def __init__(self, client: C, thread: LoopThread) -> None:
        self._client, self._thread = client, thread


class BlockingClient(Blocking[C], ABC):
    """A blocking client, for a `with` block or an explicit `close`."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def waiting(
    method: Callable[Concatenate[C, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Blocking[C], P], R]:
    """Return a blocking method for a coroutine method of the client. The blocking method returns the coroutine's
    result."""

    @wraps(method)
    def call(self: Blocking[C], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._thread.wait(method(self._client, *args, **kwargs))

    return call
