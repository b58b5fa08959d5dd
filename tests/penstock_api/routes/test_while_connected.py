"""A call that waits while its caller is connected."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from fastapi import Request

from penstock_api.routes.worker_protocol import _while_connected


class Connection:
    """A request whose caller leaves when `leave` is called."""

    def __init__(self) -> None:
        self._left = asyncio.Event()
        self.leave = self._left.set

    async def receive(self) -> dict[str, Any]:
        await self._left.wait()
        return {"type": "http.disconnect"}


def call(connection: Connection, work: Any) -> asyncio.Task[Any]:
    return asyncio.ensure_future(_while_connected(cast(Request, connection), work))


async def test_work_ends_before_its_caller_leaves() -> None:
    async def work() -> int:
        return 7

    assert await call(Connection(), work()) == 7


async def test_work_of_a_caller_that_leaves_is_cancelled_and_cleaned_up() -> None:
    connection, cleaned_up = Connection(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned_up.set()

    calling = call(connection, work())
    await asyncio.sleep(0)
    connection.leave()
    assert await calling is None
    assert cleaned_up.is_set()
    assert not calling.cancelling()


@pytest.mark.parametrize("order", [0, 1], ids=["the caller leaves first", "the work ends first"])
@pytest.mark.parametrize("turns", range(5))
async def test_code_after_the_work_is_not_cancelled(order: int, turns: int) -> None:
    """The caller leaves about when the work ends."""
    connection, ended = Connection(), asyncio.Event()
    followed = False

    async def endpoint() -> None:
        nonlocal followed
        await _while_connected(cast(Request, connection), ended.wait())
        for _ in range(5):
            await asyncio.sleep(0)
        followed = True

    calling = asyncio.ensure_future(endpoint())
    await asyncio.sleep(0)
    events: list[Callable[[], None]] = [connection.leave, ended.set]
    first, second = events if order == 0 else reversed(events)
    first()
    for _ in range(turns):
        await asyncio.sleep(0)
    second()
    await calling
    assert followed


async def test_cancelled_call_cancels_its_work() -> None:
    calling = call(Connection(), asyncio.sleep(3600))
    await asyncio.sleep(0)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling


async def test_failed_work_raises_its_error() -> None:
    async def work() -> None:
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        await call(Connection(), work())
