"""Streams that end once their caller is not let in any more: its token was revoked, it has expired, or its session ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import TypeVar

from penstock.errors import NotAllowed, NotAuthenticated
from penstock.service.assembly import cancel

T = TypeVar("T")
LOOK_EVERY = 5.0
"""Seconds between two looks at the caller of a stream that brings nothing."""


async def while_let_in(
    items: AsyncGenerator[T, None], look: Callable[[], Awaitable[None]]
) -> AsyncIterator[T]:
    """Give items until `look` raises NotAuthenticated or NotAllowed. Look before each item, and every few seconds."""
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
