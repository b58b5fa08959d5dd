"""The open pages: each is sent again when something that it shows has moved, to callers that may still look."""

from __future__ import annotations

import asyncio
import html
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx
import pytest
from starlette.responses import Response

from penstock.service.assembly import cancel
from penstock.store.executions import execution_list
from penstock_api.app import make_app
from penstock_api.backend import Backend
from penstock_api.live import open_pages
from penstock_api.live.changes import Watched
from penstock_api.live.open_pages import ALIVE, GONE, Live, OpenPages, Page
from tests.penstock_api.conftest import Api
from tests.penstock_api.serving import serving

OPEN = {"accept": "text/event-stream"}
COUNTED = "/executions?action=shop.count"


class Opened:
    """A page, as a browser has it open: what it was sent, oldest first."""

    def __init__(self, answer: httpx.Response) -> None:
        self._events = self._read(answer)

    async def _read(self, answer: httpx.Response) -> AsyncIterator[tuple[str, str]]:
        kind, lines = "", list[str]()
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name in ("data", "data:"):
                lines.append(value)
            elif not line and kind:
                yield kind, "\n".join(lines)
                kind, lines = "", []

    async def next(self) -> tuple[str, str]:
        async with asyncio.timeout(30):
            return await anext(self._events)

    async def ended(self) -> None:
        async with asyncio.timeout(30):
            async for _ in self._events:
                pass

    async def until(self, words: str) -> str:
        """The first page with these words on it."""
        while True:
            kind, page = await self.next()
            assert kind == "page"
            if words in page:
                return page


@asynccontextmanager
async def opened(api: Api, address: str, path: str, name: str = "all") -> AsyncIterator[Opened]:
    headers = {**OPEN, "authorization": f"Bearer {api.secrets[name]}"}
    async with (
        httpx.AsyncClient(base_url=address, headers=headers, timeout=30) as client,
        client.stream("GET", path) as answer,
    ):
        assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, OPEN["accept"])
        yield Opened(answer)


async def test_an_open_page_is_sent_again_when_something_on_it_has_moved_and_rendered_once_for_all(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists: list[Any] = []
    real = execution_list.page

    async def counted(*given: Any, **more: Any) -> Any:
        lists.append(given)
        return await real(*given, **more)

    monkeypatch.setattr(execution_list, "page", counted)
    await api.token("another who looks", "administrator")
    pages = api.app.state.backend.open_pages
    async with (
        serving(api.app) as address,
        opened(api, address, COUNTED) as first,
        opened(api, address, COUNTED) as second,
        opened(api, address, COUNTED) as third,
        opened(api, address, COUNTED, "another who looks") as other,
    ):
        for one in (first, second, third, other):
            await one.next()
        assert len(pages) == 2  # each is sent its own name
        before = len(lists)
        id = await api.house.client.start("shop.count", {"words": "an open page"})
        await api.house.client.result(id, timeout=20)
        for one in (first, second, third, other):
            page = await one.until(str(id))
            while "completed" not in next(row for row in page.split("<tr") if str(id) in row):
                _, page = await one.next()
        assert len(lists) - before <= 8  # of six looks or more at each of two
    async with asyncio.timeout(20):
        while len(pages):  # no browser looks any more
            await asyncio.sleep(0.02)


async def test_sessions_of_looks_are_given_back(api: Api) -> None:
    here = api.app.state.backend
    free = here.reading._free.qsize()
    async with serving(api.app) as address, opened(api, address, COUNTED) as page:
        for n in range(free + 2):
            id = await api.house.client.start("shop.count", {"words": f"look {n}"})
            await page.until(str(id))
    assert here.reading._free.qsize() == free


async def test_a_caller_that_lost_its_access_is_told_to_load_the_page(api: Api) -> None:
    await api.token("about to leave", "viewer")
    async with serving(api.app) as address, opened(api, address, COUNTED, "about to leave") as page:
        await page.next()
        await api.house.rows("delete from api_token where name = 'about to leave' returning 1")
        api.app.state.backend.forget_callers()
        id = await api.house.client.start("shop.count", {"words": "not for everybody"})
        kind, shown = await page.next()
        assert (kind, str(id) in shown) == ("gone", False)
        await page.ended()


async def test_no_page_is_sent_to_a_stranger_nor_an_unchanged_page(api: Api) -> None:
    async with api.caller(None) as stranger, api.caller() as call:
        assert (await stranger.get(COUNTED, headers=OPEN)).status_code == 401
        past = await call.get(f"/executions?before={UUID(int=2**128 - 1)}", headers=OPEN)
        assert (past.status_code, past.content) == (204, b"")
        missing = await call.get(f"/executions/{UUID(int=1)}", headers=OPEN)
        assert missing.status_code == 404
        assert "data-open" in (await call.get(COUNTED)).text
        assert "data-open" not in (await call.get(f"/executions?before={UUID(int=2**128 - 1)}")).text


async def test_an_open_page_ends_when_the_process_is_asked_to(api: Api) -> None:
    replica = Backend.of(api.house.client)
    for path in (COUNTED, "/limits"):  # one that watches, one that only looks again now and then
        replica.changes.closed.clear()
        async with serving(make_app(replica)) as address, opened(api, address, path) as page:
            await page.next()
            await replica.end_streams()
            await page.ended()


def test_whatever_is_written_on_a_page_begins_no_event() -> None:
    said = Page("a\rdata: b\r\nevent: gone\n\nevent: gone\r\rretry: 1", 200, None).event
    head, *lines = said.removesuffix(b"\n\n").split(b"\n")
    assert head == b"event: page"
    assert all(line.startswith(b"data: ") for line in lines)
    assert b"\r" not in said
    assert len(lines) == 7


class Looked:
    """A page that says how often it was rendered, and what is to happen meanwhile."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.times = 0
        self.text: str | None = None
        self.status = 200
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def __call__(self) -> Response:
        self.times += 1
        page = Page(self.text or str(self.times), self.status, self.live)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return page


async def nobody_is_refused() -> None:
    pass


async def follow(api: Api, look: Looked, at: str) -> AsyncIterator[bytes]:
    pages: OpenPages = api.app.state.backend.open_pages
    found = await pages.open(at, nobody_is_refused, look)
    assert not isinstance(found, Response)
    return found


async def sent(stream: AsyncIterator[bytes]) -> str:
    async with asyncio.timeout(20):
        return html.unescape((await anext(stream)).decode())


async def test_a_move_before_the_first_watcher_is_not_missed(api: Api) -> None:
    """Between the look at a page and the watch for what changes on it."""
    look = Looked(Live(Watched(action="shop.count"), None))

    async def count() -> None:
        id = await api.house.client.start("shop.count", {"words": "moved"})
        await api.house.client.result(id, timeout=20)

    look.meanwhile = count
    stream = await follow(api, look, "moves at once")
    assert "data: 1" in await sent(stream)
    assert "data: 2" in await sent(stream)
    await stream.aclose()  # type: ignore[attr-defined]


async def test_of_two_streams_the_one_that_does_not_open_looks_again(api: Api) -> None:
    """The object may have moved since its look, and the other stream have been notified of it."""
    look = Looked(Live(Watched(action="no.such"), None))
    first, second = await asyncio.gather(follow(api, look, "two come"), follow(api, look, "two come"))
    assert ["data: 1" in await sent(first), "data: 2" in await sent(second)] == [True, True]
    assert "data: 3" in await sent(second)
    await first.aclose()  # type: ignore[attr-defined]
    await second.aclose()  # type: ignore[attr-defined]


async def test_of_a_stream_that_is_never_begun_nothing_stays_open(api: Api) -> None:
    stream = await follow(api, Looked(Live(Watched(), 0.1)), "left at once")
    assert not len(api.app.state.backend.open_pages)
    await stream.aclose()  # type: ignore[attr-defined]


async def test_a_stream_that_leaves_takes_the_page_from_no_other(api: Api) -> None:
    look = Looked(Live(Watched(action="shop.charge"), None))
    first = await follow(api, look, "two look")
    second = await follow(api, look, "two look")
    await sent(first)
    await sent(second)
    await first.aclose()  # type: ignore[attr-defined]
    assert len(api.app.state.backend.open_pages) == 1
    look.text = "after that"
    await api.house.client.start("shop.charge", {"order": 2})
    assert "data: after that" in await sent(second)
    await second.aclose()  # type: ignore[attr-defined]
    assert not len(api.app.state.backend.open_pages)


async def test_an_unchanged_or_failed_page_is_not_sent(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_pages, "QUIET", 0.5)
    look = Looked(Live(None, 0.05))
    stream = await follow(api, look, "by the clock")
    assert "data: 1" in await sent(stream)
    look.text = "the same"
    assert "data: the same" in await sent(stream)
    look.text, look.status = "an error", 500
    before = look.times
    async with asyncio.timeout(20):
        waiting = asyncio.ensure_future(anext(stream))
        while look.times < before + 3:
            await asyncio.sleep(0.02)
    assert not waiting.done()
    look.text, look.status = "mended", 200
    assert b"data: mended" in await waiting
    await stream.aclose()  # type: ignore[attr-defined]


async def test_a_page_on_which_nothing_moves_says_that_it_is_there(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_pages, "QUIET", 0.05)
    stream = await follow(api, Looked(Live(Watched(action="no.such"), None)), "quiet")
    assert "data: 1" in await sent(stream)
    # the watch begins with what moved just before
    said = {await sent(stream) for _ in range(5)}
    assert said <= {ALIVE.decode(), "event: page\ndata: 2\n\n"}
    assert ALIVE.decode() in said
    assert GONE.decode() not in said
    await stream.aclose()  # type: ignore[attr-defined]


async def test_many_different_pages_are_rendered_less_often_each(api: Api) -> None:
    """Twenty browsers look at pages of their own, each of which takes 0.05 s: together they may take half of the
    time."""
    took, seconds = 0.05, 3.0
    looks = [Looked(Live(None, 0.01)) for _ in range(20)]

    async def slowly() -> None:
        await asyncio.sleep(took)

    async def look_on(look: Looked, at: str) -> None:
        async for _ in await follow(api, look, at):
            look.meanwhile = slowly

    looking = [asyncio.create_task(look_on(look, f"different {n}")) for n, look in enumerate(looks)]
    while not all(look.times > 2 for look in looks):  # what a rendering takes is known by then
        await asyncio.sleep(0.05)
    before = sum(look.times for look in looks)
    await asyncio.sleep(seconds)
    rendered = sum(look.times for look in looks) - before
    await cancel(*looking)
    assert rendered <= 1.5 * seconds / (open_pages.TIMES_ALL * took)
