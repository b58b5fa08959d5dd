"""Many look at the same page, and look again whenever something changes: they are shown one rendering of it.

Whoever asks is shown what was rendered after he asked, never before: so nobody misses what he was told of, whichever replica
told him. Those who ask while a rendering is under way, or shortly after one, share the next."""

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
        """The page, as `render` of the first who asks for the same `page` gives it, in his own task. Raises what that raises."""
        while (coming := self._coming.get(page)) is not None:
            shown = await asyncio.shield(coming)  # one who leaves takes it from nobody
            if shown is not None:
                return shown
        return await self._render(page, render)

    def __len__(self) -> int:
        """Pages that somebody was shown lately, or waits for."""
        return len({*self._coming, *self._last})

    async def _render(self, page: Hashable, render: Callable[[], Awaitable[Response]]) -> Response:
        loop = asyncio.get_running_loop()
        rendered = self._coming[page] = loop.create_future()
        try:
            try:
                if (last := self._last.get(page)) is not None:
                    await asyncio.shield(last)
            finally:
                # Who asks from now on may have been told of what this does not show any more.
                del self._coming[page]
            self._last[page] = loop.create_future()
            try:
                shown = await render()
            finally:
                loop.call_later(APART, self._let_the_next, page)
            rendered.set_result(shown)
            return shown
        except Exception as error:
            rendered.set_exception(error)
            rendered.exception()  # there may be nobody else to hear of it
            raise
        finally:
            if not rendered.done():  # he has left: another of those who wait renders it
                rendered.set_result(None)

    def _let_the_next(self, page: Hashable) -> None:
        self._last.pop(page).set_result(None)
