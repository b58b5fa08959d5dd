"""Renderings of pages that several watchers share. Many clients watch the same page, and request it again at each
change.

A client gets a rendering that began after its request, never an earlier one. So no client misses a change of which it
was notified, by any replica. Clients that ask during a rendering, or shortly after one, share the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable

from starlette.responses import Response

HEADER = "x-look"
"""The header of requests with which an open page asks for its new state."""
APART = 0.1
"""The seconds between the end of a rendering of a page and the start of the next."""


class SharedLooks:
    def __init__(self) -> None:
        self._coming: dict[Hashable, asyncio.Future[Response | None]] = {}
        self._last: dict[Hashable, asyncio.Future[None]] = {}

    async def look(self, page: Hashable, render: Callable[[], Awaitable[Response]]) -> Response:
        """Return the page. The first client that asks for `page` renders it with its `render`, in its own task. Raises
        the errors of `render`."""
        while (coming := self._coming.get(page)) is not None:
            # shielded: a client that leaves does not cancel it for the others
            response = await asyncio.shield(coming)
            if response is not None:
                return response
        return await self._render(page, render)

    def __len__(self) -> int:
        """Return the number of pages that were rendered lately, or are awaited."""
        return len({*self._coming, *self._last})

    async def _render(self, page: Hashable, render: Callable[[], Awaitable[Response]]) -> Response:
        loop = asyncio.get_running_loop()
        rendered = self._coming[page] = loop.create_future()
        try:
            try:
                if (last := self._last.get(page)) is not None:
                    await asyncio.shield(last)
            finally:
                # A client that asks after this may know of a change that this rendering does not show.
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
            rendered.exception()  # marks it as retrieved, since no other client may be waiting
            raise
        finally:
            if not rendered.done():  # the client has left, so another waiting client renders the page
                rendered.set_result(None)

    def _let_the_next(self, page: Hashable) -> None:
        self._last.pop(page).set_result(None)
