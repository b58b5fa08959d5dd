"""The timeouts of calls to the broker, and their retries."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import structlog
from aiormq.abc import AbstractChannel as Channel
from pamqp.commands import Connection
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_delay,
    stop_never,
    wait_random_exponential,
)

from penstock.errors import ConfigurationError, ConnectionFailed, PenstockError

log = structlog.get_logger(__name__)

T = TypeVar("T")

CALL_TIMEOUT = 5.0
"""Seconds that RabbitMQ has to answer a declare, a consume, or a new connection. If it declares something after that,
the next try finds it declared."""

CLOSE_TIMEOUT = 2.0
"""Seconds that RabbitMQ has to answer a close."""

LONGEST_WAIT = 2.0
"""The maximum seconds between two tries to connect."""

TOLD_AGAIN = 60.0
"""Seconds after which the same reason for a retry is logged again."""

RECONNECT_WAIT = 5.0
"""Seconds that a call waits for a lost connection, before it raises an error."""


async def persistently(
    operation: str,
    work: Callable[[], Awaitable[T]],
    *,
    deadline: float | None = None,
    also: type[BaseException] | None = None,
    quiet: bool = False,
) -> T:
    """Retry `work` until it succeeds, for at most `deadline` seconds (None: for ever), and return its result. Only
    ConnectionFailed and `also` are retried; all other errors are raised. With `quiet`, only ConfigurationError is
    logged."""

    logged_at: dict[str, float] = {}

    def tell(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        text, now = str(error), time.monotonic()
        if (quiet and not isinstance(error, ConfigurationError)) or now < logged_at.get(
            text, -math.inf
        ) + TOLD_AGAIN:
            return
        logged_at[text] = now
        hint = getattr(error, "hint", None)
        log.warning("rabbitmq.retry", what=operation, times=state.attempt_number, reason=text, hint=hint)

    retrying = AsyncRetrying(
        retry=retry_if_exception_type((ConnectionFailed, also) if also else ConnectionFailed),
        wait=wait_random_exponential(multiplier=0.2, max=LONGEST_WAIT),
        stop=stop_after_delay(deadline) if deadline is not None else stop_never,
        before_sleep=tell,
        reraise=True,
    )
    # Not `async for attempt in ...`: a StopAsyncIteration from `work` would end that loop as if it had succeeded.
    return await retrying(work)


@contextlib.asynccontextmanager
async def answered(timeout: float = CALL_TIMEOUT) -> AsyncIterator[None]:
    """Raise ConnectionFailed if the calls inside fail, or take longer than `timeout` seconds, whatever the AMQP
    libraries raise. They also raise a bare Exception (a channel that is opened as its connection closes) and
    StopAsyncIteration (a connection that ends as it begins). So the block must contain only their calls.

    If a connection dies, aiormq raises CancelledError in the task that waits for an answer. Mistaken for a real
    cancellation, it would end the loop that should reconnect, and the process would hang.
    """
    task = asyncio.current_task()
    assert task is not None
    cancels = task.cancelling()
    try:
        async with asyncio.timeout(timeout):
            yield
    except asyncio.CancelledError:
        if task.cancelling() > cancels:
            raise
        raise ConnectionFailed("the connection closed while a call waited for its answer") from None
    except PenstockError:
        raise
    except Exception as error:
        if (
            task.cancelling() > cancels
        ):  # an error and a cancellation at once: the cancellation must not get lost
            raise asyncio.CancelledError from error
        if isinstance(error, TimeoutError):
            raise ConnectionFailed(f"no answer within {timeout:g} seconds") from error
        raise ConnectionFailed(reason(error)) from error


async def quietly(closing: Awaitable[object]) -> None:
    """Close something that may be closed already, within CLOSE_TIMEOUT seconds. Errors are ignored."""
    with contextlib.suppress(ConnectionFailed):
        async with answered(CLOSE_TIMEOUT):
            await closing


async def close_channel(channel: Channel) -> None:
    if not channel.is_closed:
        await quietly(channel.close())


def pause() -> float:
    """Return a random delay in seconds before the first try after a loss, so that replicas do not reconnect in step."""
    return random.uniform(0.05, 0.3)


def reason(error: BaseException | None) -> str:
    """Return an error of the AMQP libraries as text. None of these errors contains credentials."""
    if error is None or isinstance(error, asyncio.CancelledError):
        return "closed"
    text = ", ".join(str(arg) for arg in error.args) if error.args else ""
    if "OpenOk" in text:
        words = _words_of_close(error)
        return "the broker refused the virtual host" + (f": {words}" if words else "")
    return text or type(error).__name__


def _words_of_close(error: BaseException) -> str:
    """Return the text with which the broker closed the connection. aiormq's error names the frame and leaves out its
    text, which distinguishes a missing virtual host from an exceeded limit."""
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame.f_locals.get("frame")
        if isinstance(frame, Connection.Close):
            return str(frame.reply_text)
        trace = trace.tb_next
    return ""
