"""Pages that are open in browsers: each is sent again over one stream when something that it shows has moved. Streams that
show the same share one rendering of it (`SharedLooks`). A page that looks as before is not sent."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import structlog
from starlette.responses import HTMLResponse, Response

from penstock.errors import NotAllowed, NotAuthenticated
from penstock.service.assembly import cancel
from penstock.store.session.database import is_transient
from penstock_api.live.changes import Changes, Watched
from penstock_api.live.shared_looks import SharedLooks

log = structlog.get_logger()

SOON = 0.08
"""Seconds, so that what moves together is shown together."""
LEAST, TIMES, TIMES_ALL = 0.3, 10, 2
"""Seconds from one rendering of a page to the next, at the least; and so many times what one takes, and what one of each of the
open pages takes: what they ask of the database is taken from all else that runs, and this process has other work as well."""
LATELY = 5
"""Renderings of which the shortest tells what one takes: one that had to wait for something else says nothing of the next."""
LONGEST = 3600.0
"""Seconds after which a stream ends, and the browser connects again, perhaps to another replica."""
QUIET = 15.0
"""Seconds after which a stream that says nothing says that it is there, so that no proxy in between ends it."""
PAUSE = 1.0
"""Seconds until changes are asked for again, where the database was away."""
ALIVE = b": here\n\n"
GONE = b"event: gone\ndata:\n\n"
"""Whoever looks may not look any more: the browser asks for the page anew, and is told what to do."""
LINE = re.compile(rb"\r\n|\r|\n")
"""All that ends a line of a stream: what somebody wrote on a page begins no event of its own."""

Guard = Callable[[], Awaitable[None]]
Render = Callable[[], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Live:
    """The instants at which a page is rendered again: once something that is `watched` has moved, and after `every` seconds,
    if nothing has."""

    watched: Watched | None
    every: float | None


class Page(HTMLResponse):
    """`live`: None where it stays as it is."""

    def __init__(self, content: str, status: int, live: Live | None) -> None:
        super().__init__(content, status)
        self.live = live

    @cached_property
    def event(self) -> bytes:
        """Return the event of a stream that shows the page."""
        lines = b"".join(b"data: %b\n" % line for line in LINE.split(bytes(self.body)))
        return b"event: page\n" + lines + b"\n"


class OpenPages:
    """All of one process."""

    def __init__(self, changes: Changes, looks: SharedLooks) -> None:
        self._changes = changes
        self._looks = looks
        self._open: dict[Hashable, _OpenPage] = {}

    def __len__(self) -> int:
        """Return the number of different open pages."""
        return len(self._open)

    async def open(self, at: Hashable, guard: Guard, render: Render) -> AsyncIterator[bytes] | Response:
        """The stream of the page `at`: as it is now, and again whenever it has changed, while `guard` raises nothing. In place of
        that an answer, where it is no page that changes, or cannot be shown."""
        since = datetime.now(UTC)
        open_page = self._open.get(at)
        moved = open_page.moved if open_page is not None else None
        rendered = await self._looks.look(at, render)
        if rendered.status_code != 200:
            return rendered
        if not isinstance(rendered, Page) or rendered.live is None:
            return Response(status_code=204)  # with which a browser does not ask again
        return self._follow(at, rendered, rendered.live, since, open_page, moved, guard, render)

    def end(self) -> None:
        """End all streams."""
        for page in self._open.values():
            page.end()

    def _pace(self, page: _OpenPage) -> float:
        """Seconds until this page is rendered again."""
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
        """Send the first page, and follow its changes. `moved`, and the page before it, are of the time before the first look.
        Nothing is opened before the first page is sent: of a stream that is never begun nothing would be closed."""
        if (page := self._open.get(at)) is None:
            page = self._open[at] = _OpenPage(self._changes, live, since, self._pace)
            moved = page.moved
        elif page is not open_page:
            moved = None  # another stream has opened it meanwhile: one more look
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
                moved = page.moved  # before the look: whatever that does not show any more leads to another
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
    """A page that a client watches. `moved`: done once there may be something else to see; then there is the next one."""

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
        """Seconds of a rendering."""
        return min(self.took, default=0.0)

    def end(self) -> None:
        """End all streams, so that their browsers connect again."""
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
