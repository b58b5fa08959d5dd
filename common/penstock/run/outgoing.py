"""The requests of an action's code to its worker: publish an event, start an execution, send a signal, await a result.

The worker carries them out on its own connections, so that an action opens none. A request is also JSON, since code in
a child process sends it through a pipe.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import wait
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Protocol, TypeAlias
from uuid import UUID

from penstock import errors
from penstock.errors import ExecutionFailed, InvalidInput, OutsideRun, PenstockError
from penstock.run import instants
from penstock.run.sent_signal import SentSignal


@dataclass(frozen=True, slots=True)
class Publish:
    """A request to publish an event. `transactional`: with the end of the attempt, if the action returns."""

    trigger: str
    payload: Any
    key: str | None = None
    transactional: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """A request to start an execution. `transactional` as in Publish. `delay`, `debounce` and `at_most` are in seconds, or
    texts such as "5s"."""

    ref: str
    params: Mapping[str, Any]
    key: str | None = None
    priority: int = 0
    delay: float | str | None = None
    at: datetime | None = None
    transactional: bool = False
    debounce: float | str | None = None
    debounce_key: str | None = None
    at_most: float | str | None = None
    keep: str = "last"
    labels: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Signal:
    """A request to send a signal to a durable function, which is named by its id or by the key of its start.
    `transactional` as in Publish."""

    execution_id: UUID | None
    name: str | None
    value: Any = None
    transactional: bool = False
    key: str | None = None


Effect: TypeAlias = Publish | Start | Signal
"""A request that is stored, at once or with the end of its attempt."""


@dataclass(frozen=True, slots=True)
class AwaitResult:
    """A request for the result of an execution of the action `ref` that this attempt started. `timeout` is in seconds."""

    execution_id: UUID
    ref: str
    timeout: float | None = None


LOOK_S = 0.5
"""The seconds after which a waiting thread checks again that its attempt is not cancelled."""


@dataclass(frozen=True, slots=True)
class Callback:
    """A request for the address by which something outside completes this attempt."""


Request: TypeAlias = Effect | AwaitResult | Callback
KINDS: Mapping[str, type[Request]] = {
    kind.__name__: kind for kind in (Publish, Start, Signal, AwaitResult, Callback)
}


class Outgoing(Protocol):
    """The way from an action's code to its worker. Both methods raise the errors of the request."""

    async def send(self, request: Request) -> Any:
        """Carry out a request, and return its answer: the id of an event or an execution, a SentSignal (each None if it is
        transactional), a result, or an address."""

    def send_blocking(self, request: Request, is_cancelled: Callable[[], bool]) -> Any:
        """Carry out a request as `send` does, while the calling thread waits. Raises CancelledError once `is_cancelled`
        returns True: the attempt was cancelled."""


class LoopOutgoing:
    """The way from code in the worker's process. `carry_out` runs on the worker's event loop, whichever thread asks.
    Create it on that loop."""

    __slots__ = ("_carry_out", "_loop", "_thread")

    def __init__(self, carry_out: Callable[[Request], Any]) -> None:
        self._carry_out = carry_out
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    async def send(self, request: Request) -> Any:
        if asyncio.get_running_loop() is self._loop:
            return await self._carry_out(request)
        if self._is_in_thread_of_loop():
            raise OutsideRun(
                "the body of a durable function is replayed, and neither publishes, nor starts, nor signals by itself",
                hint="Publish, start and signal in a step, `await ctx.step('publish', publish_it)`. Run a child with `ctx.run`.",
            )
        # A coroutine function of the thread executor has an event loop of its own.
        return await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(self._carry_out(request), self._loop)
        )

    def send_blocking(self, request: Request, is_cancelled: Callable[[], bool]) -> Any:
        if self._is_in_thread_of_loop():
            raise OutsideRun(
                "a blocking call would stop the worker's event loop",
                hint="In an `async def` action write `await current().start(...)`, without `.sync`.",
            )
        future = asyncio.run_coroutine_threadsafe(self._carry_out(request), self._loop)
        try:
            while not is_cancelled():
                done, _ = wait([future], timeout=LOOK_S)
                if done:
                    return future.result()
            raise asyncio.CancelledError("the attempt was cancelled")
        finally:
            future.cancel()

    def _is_in_thread_of_loop(self) -> bool:
        return threading.get_ident() == self._thread


def request_document(request: Request) -> dict[str, Any]:
    """Return a request as a document for JSON."""
    return {"request": type(request).__name__, **asdict(request)}


def request_of(document: Mapping[str, Any]) -> Request:
    """Return the request in a document. Raises InvalidInput for a document that is none."""
    values = dict(document)
    try:
        kind = KINDS[values.pop("request")]
        if values.get("at") is not None:
            values["at"] = instants.instant(values["at"])
        if values.get("execution_id") is not None:
            values["execution_id"] = UUID(values["execution_id"])
        return kind(**values)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"a child process sent an unknown request: {error}") from None


def answer_document(answer: Any) -> dict[str, Any]:
    """Return the answer of a request as a document for JSON."""
    if isinstance(answer, SentSignal):
        return {"signal": {**asdict(answer), "execution_id": str(answer.execution_id)}}
    return {"id": str(answer)} if isinstance(answer, UUID) else {"result": answer}


def error_document(error: Exception) -> dict[str, Any]:
    """Return the error of a request as a document for JSON."""
    document: dict[str, Any] = {"error": type(error).__name__, "message": str(error)}
    if isinstance(error, PenstockError):
        document["hint"] = error.hint
    if isinstance(error, ExecutionFailed):
        document |= {"execution_id": str(error.execution_id), "status": error.status}
    return document


def answer_of(document: Mapping[str, Any]) -> Any:
    """Return the answer in a document. Raises the error in it."""
    if "signal" in document:
        return SentSignal(**{**document["signal"], "execution_id": UUID(document["signal"]["execution_id"])})
    if "error" not in document:
        return UUID(document["id"]) if "id" in document else document.get("result")
    name, message = document["error"], document["message"]
    if name == "TimeoutError":
        raise TimeoutError(message)
    kind = getattr(errors, name, None)
    if kind is ExecutionFailed:
        raise ExecutionFailed(
            message,
            hint=document["hint"],
            execution_id=UUID(document["execution_id"]),
            status=document["status"],
        )
    if isinstance(kind, type) and issubclass(kind, PenstockError):
        raise kind(message, hint=document.get("hint"))
    raise PenstockError(f"{name}: {message}")
