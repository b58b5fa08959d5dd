"""Streams that end once their caller is no longer admitted: its token was revoked or has expired, or its session
ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import TypeVar

from penstock.errors import NotAllowed, NotAuthenticated
from penstock.service.assembly import cancel

T = TypeVar("T")
LOOK_EVERY = 5.0
"""The seconds between two checks of the caller of an idle stream."""


async def while_let_in(
    items: AsyncGenerator[T, None], look: Callable[[], Awaitable[None]]
) -> AsyncIterator[T]:
    """Yield items until `look` raises NotAuthenticated or NotAllowed. `look` is called before each item, and every
    LOOK_EVERY seconds."""
    coming: asyncio.Future[T] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(items))
            ready, _ = await asyncio.wait((coming,), timeout=LOOK_EVERY)
            await look()
            if ready:
                item, coming = coming.result(), None
                yield item
    except (StopAsyncIteration, NotAuthenticated, NotAllowed):
        return
    finally:
        if coming is not None:
            await cancel(coming)
        await items.aclose()
