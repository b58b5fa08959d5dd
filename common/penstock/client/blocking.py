"""The base of clients with blocking methods: an event loop in a thread, and methods that wait for coroutines there."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")


class LoopThread:
    """A thread with an event loop, for callers in other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="penstock", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        """Return the result of a coroutine. An interrupt, such as Ctrl-C, cancels the coroutine."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


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
