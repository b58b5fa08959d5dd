"""Pages that are open in browsers. When something that a page shows has moved, it is rendered again and sent over the
browser's stream. Streams of the same page share one rendering (`SharedLooks`). An unchanged page is not sent."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import structlog
from starlette.responses import HTMLResponse, Response

from penstock.errors import NotAllowed, NotAuthenticated
from penstock.service.assembly import cancel
from penstock.store.session.database import is_transient
from penstock.store.session.noted_clock import noted
from penstock_api.live.changes import Changes, Watched
from penstock_api.live.shared_renderings import SharedLooks

log = structlog.get_logger()

SOON = 0.08
"""The seconds after a move before a page is rendered, so that simultaneous moves are shown together."""
LEAST, TIMES, TIMES_ALL = 0.3, 10, 2
"""The pace of renderings. Between two renderings of a page there are at least LEAST seconds, TIMES its own duration,
and TIMES_ALL the total duration of all open pages. So renderings leave the database and this process room for other
work."""
LATELY = 5
"""The number of last renderings whose shortest counts as the duration of one, since the others may have waited for
other work."""
LONGEST = 3600.0
"""The seconds after which a stream ends. The browser then reconnects, possibly to another replica."""
QUIET = 15.0
"""The seconds after which an idle stream sends a comment, so that no proxy closes it."""
PAUSE = 1.0
"""The seconds until changes are watched again after an outage of the database."""
ALIVE = b": here\n\n"
GONE = b"event: gone\ndata:\n\n"
"""The event for a browser that is no longer admitted. The browser requests the page again, and is told what to do."""
LINE = re.compile(rb"\r\n|\r|\n")
"""The characters that end a line of a stream. They are split off, so that a text on a page cannot begin an event."""

Guard = Callable[[], Awaitable[None]]
Render = Callable[[], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Live:
    """The triggers for rendering a page again: a move of something that is `watched`, and the end of `every` seconds
    without one."""

    watched: Watched | None
    every: float | None


class Page(HTMLResponse):
    """A rendered page. `live` is None for a page that does not change."""

    def __init__(self, content: str, status: int, live: Live | None) -> None:
        super().__init__(content, status)
        self.live = live

    @cached_property
    def event(self) -> bytes:
        """Return the event with which a stream sends the page."""
        lines = b"".join(b"data: %b\n" % line for line in LINE.split(bytes(self.body)))
        return b"event: page\n" + lines + b"\n"


class OpenPages:
    """The pages that browsers keep open with a live stream from this process. Browsers that see the same page share
    what is rendered."""

    def __init__(self, changes: Changes, looks: SharedLooks) -> None:
        self._changes = changes
        self._looks = looks
        self._open: dict[Hashable, _OpenPage] = {}

    def __len__(self) -> int:
        """Return the number of different open pages."""
        return len(self._open)

    async def open(self, at: Hashable, guard: Guard, render: Render) -> AsyncIterator[bytes] | Response:
        """Return the stream of the page `at`: its current state, and each changed one, while `guard` raises nothing.

        Return an ordinary answer instead for a page that does not change, or that cannot be shown.
        """
        since = noted()
        open_page = self._open.get(at)
        moved = open_page.moved if open_page is not None else None
        rendered = await self._looks.look(at, render)
        if rendered.status_code != 200:
            return rendered
        if not isinstance(rendered, Page) or rendered.live is None:
            return Response(status_code=204)  # a browser does not retry after this status
        return self._follow(at, rendered, rendered.live, since, open_page, moved, guard, render)

    def end(self) -> None:
        """End all streams of all pages."""
        for page in self._open.values():
            page.end()

    def _pace(self, page: _OpenPage) -> float:
        """Return the seconds until this page may be rendered again."""
        return max(
            LEAST, TIMES * page.takes, TIMES_ALL * sum(open_page.takes for open_page in self._open.values())
        )

    async def _follow(
        self,
        at: Hashable,
        first: Page,
        live: Live,
        since: datetime,
        open_page: _OpenPage | None,
        moved: asyncio.Future[None] | None,
        guard: Guard,
        render: Render,
    ) -> AsyncIterator[bytes]:
        """Send the first page, and then its changes. `open_page` and `moved` are from before the first rendering.

        The page is opened only after its first state is sent: a stream that is never started would never close it.
        """
        if (page := self._open.get(at)) is None:
            page = self._open[at] = _OpenPage(self._changes, live, since, self._pace)
            moved = page.moved
        elif page is not open_page:
            moved = None  # another stream has opened the page since, so render once more
        page.viewers += 1
        loop = asyncio.get_running_loop()
        until, current = loop.time() + LONGEST, first
        try:
            yield first.event
            while loop.time() < until:
                while moved is not None and not (await asyncio.wait((moved,), timeout=QUIET))[0]:
                    await guard()
                    yield ALIVE
                if page.over:
                    return
                # taken before rendering, so that a later change leads to another rendering
                moved = page.moved
                await guard()
                began = loop.time()
                rendered = await self._looks.look(at, render)
                page.took.append(loop.time() - began)
                if (
                    isinstance(rendered, Page)
                    and rendered.status_code == 200
                    and rendered.body != current.body
                ):
                    current, page.live = rendered, rendered.live or page.live
                    yield current.event
        except (NotAuthenticated, NotAllowed):
            yield GONE
        finally:
            page.viewers -= 1
            if not page.viewers:
                if self._open.get(at) is page:
                    del self._open[at]
                await page.close()


class _OpenPage:
    """A page that at least one client watches. `moved` is done once the page may have changed, and is then replaced by
    a new future."""

    def __init__(
        self, changes: Changes, live: Live, since: datetime, pace: Callable[[_OpenPage], float]
    ) -> None:
        self.live = live
        self.viewers = 0
        self.took: deque[float] = deque(maxlen=LATELY)
        self.over = False
        self._changes = changes
        self._since = since
        self._pace = pace
        self._loop = asyncio.get_running_loop()
        self._stir = asyncio.Event()
        self.moved: asyncio.Future[None] = self._loop.create_future()
        self._tasks = [asyncio.create_task(self._keep_pace(), name="open page")]
        if live.watched is not None:
            self._tasks.append(asyncio.create_task(self._watch(live.watched), name="open page's changes"))
        for task in self._tasks:
            task.add_done_callback(self._ended)

    @property
    def takes(self) -> float:
        """Return the duration of a rendering in seconds."""
        return min(self.took, default=0.0)

    def end(self) -> None:
        """End all streams of the page, so that their browsers reconnect."""
        self.over = True
        if not self.moved.done():
            self.moved.set_result(None)

    async def close(self) -> None:
        await cancel(*self._tasks)

    async def _keep_pace(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.live.every):
                    await self._stir.wait()
            await asyncio.sleep(SOON)
            self._stir.clear()
            if self.over:
                return
            moved, self.moved = self.moved, self._loop.create_future()
            moved.set_result(None)
            await asyncio.sleep(self._pace(self) - SOON)

    async def _watch(self, watched: Watched) -> None:
        while not self._changes.closed.is_set():
            try:
                async for _ in self._changes.watch(watched, seconds=LONGEST, since=self._since):
                    self._stir.set()
            except Exception as error:
                if not is_transient(error):
                    raise
                await asyncio.sleep(PAUSE)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("api.open_page_failed", exc_info=error)
        self.end()
