"""Renderings of pages that watchers share. Many clients watch the same page, and ask again whenever something changes. A
client sees a rendering that began after its request, never one from before. So no client misses a change that it was
notified of, whichever replica notified it. Clients that ask while a rendering is under way, or shortly after one, share the
next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable

from starlette.responses import Response

HEADER = "x-look"
"""Of requests of pages that are open and look again."""
APART = 0.1
"""Seconds from the end of a rendering of a page to the begin of the next."""


class SharedLooks:
    def __init__(self) -> None:
        self._coming: dict[Hashable, asyncio.Future[Response | None]] = {}
        self._last: dict[Hashable, asyncio.Future[None]] = {}

    async def look(self, page: Hashable, render: Callable[[], Awaitable[Response]]) -> Response:
        """Return the page. `render` of the first client that asks for the same `page` renders it, in that client's task.
        Raises the errors of `render`."""
        while (coming := self._coming.get(page)) is not None:
            response = await asyncio.shield(coming)  # a client that leaves does not cancel it for the rest
            if response is not None:
                return response
        return await self._render(page, render)

    def __len__(self) -> int:
        """Return the number of pages that a client was shown lately, or waits for."""
        return len({*self._coming, *self._last})

    async def _render(self, page: Hashable, render: Callable[[], Awaitable[Response]]) -> Response:
        loop = asyncio.get_running_loop()
        rendered = self._coming[page] = loop.create_future()
        try:
            try:
                if (last := self._last.get(page)) is not None:
                    await asyncio.shield(last)
            finally:
                # A client that asks from now on may have been notified of a change that this rendering does not show.
                del self._coming[page]
            self._last[page] = loop.create_future()
            try:
                response = await render()
            finally:
                loop.call_later(APART, self._let_the_next, page)
            rendered.set_result(response)
            return response
        except Exception as error:
            rendered.set_exception(error)
            rendered.exception()  # no other client may be left to receive the error
            raise
        finally:
            if not rendered.done():  # the client has left: another waiting client renders it
                rendered.set_result(None)

    def _let_the_next(self, page: Hashable) -> None:
        self._last.pop(page).set_result(None)
