"""The client for code that does not await: scripts, shells, views of Django and Flask.

with SyncClient.connect() as client:
    print(client.run("shop.charge", {"order": 7, "amount": 25}))
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, overload

from penstock.client.client import Client
from penstock.client.start_and_wait import Startable
from penstock.language.action_ref import ActionCall, ActionRef

if TYPE_CHECKING:
    from penstock.language.workflows.model import Workflow
    from penstock.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")


class LoopThread:
    """An event loop in a thread of its own, for callers in other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="penstock", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        """What it gives. Interrupted, such as by Ctrl-C, it is cancelled."""
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


def _waiting(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[SyncClient, P], R]:
    """The method of the client, which returns once its coroutine has."""

    @wraps(method)
    def call(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._thread.wait(method(self._client, *args, **kwargs))

    return call


class SyncClient:
    """`Client` with methods that block. They take, give and raise what those of `Client` do. Safe to share between threads;
    make one for each process, after it has forked. Not for coroutines: those await `Client`."""

    def __init__(self, settings: Settings | None = None, *, thread: LoopThread | None = None) -> None:
        """Use `connect`, or call `close` in the end. Raises ConnectionFailed, ConfigurationError."""
        self._own_thread = thread is None
        self._thread = thread or LoopThread()
        self._connection: AbstractAsyncContextManager[Client] = Client.connect(settings)
        try:
            self._client = self._thread.wait(_entered(self._connection))
        except BaseException:
            self._close_thread()
            raise

    @classmethod
    def connect(cls, settings: Settings | None = None) -> Self:
        """A client for the installation that the settings name, as `Client.connect` finds it. Closed by `with` or `close`."""
        return cls(settings)

    start = _waiting(Client.start)
    start_many = _waiting(Client.start_many)
    publish = _waiting(Client.publish)
    result = _waiting(Client.result)
    get = _waiting(Client.get)
    history = _waiting(Client.history)
    attempts = _waiting(Client.attempts)
    why = _waiting(Client.why)
    cancel = _waiting(Client.cancel)
    command = _waiting(Client.command)
    rerun = _waiting(Client.rerun)
    answer = _waiting(Client.answer)
    flush = _waiting(Client.flush)

    @overload
    def run(self, what: ActionCall[R], /, *, timeout: float | None = None, **options: Any) -> R: ...
    @overload
    def run(
        self,
        what: ActionRef[..., R],
        params: Mapping[str, Any] | None = None,
        /,
        *,
        timeout: float | None = None,
        **options: Any,
    ) -> R: ...
    @overload
    def run(
        self,
        what: str | Workflow,
        params: Mapping[str, Any] | None = None,
        /,
        *,
        timeout: float | None = None,
        **options: Any,
    ) -> Any: ...
    def run(
        self,
        what: Startable,
        params: Mapping[str, Any] | None = None,
        /,
        *,
        timeout: float | None = None,
        **options: Any,
    ) -> Any:
        """Start and wait `timeout` seconds at the most: the result. As `Client.run`."""
        return self.result(self.start(what, params, **options), timeout=timeout)

    def close(self) -> None:
        """Publish what was submitted, and let go of the connections."""
        try:
            self._thread.wait(_left(self._connection))
        finally:
            self._close_thread()

    def _close_thread(self) -> None:
        if self._own_thread:
            self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def _entered(connection: AbstractAsyncContextManager[Client]) -> Client:
    return await connection.__aenter__()


async def _left(connection: AbstractAsyncContextManager[Client]) -> None:
    await connection.__aexit__(None, None, None)
