"""The looks at the same page share a rendering, and no caller is shown one that was rendered before its request."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from starlette.responses import Response

from penstock.store.executions import execution_list
from penstock_api.live import shared_renderings
from penstock_api.live.shared_renderings import SharedLooks
from tests.penstock_api.conftest import Api

AGAIN = {shared_renderings.HEADER: "again", "accept": "text/html"}


def strict(api: Api, name: str) -> httpx.AsyncClient:
    """A caller that raises what the app raises, be it after the answer."""
    headers = {"authorization": f"Bearer {api.secrets[name]}"}
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(api.app), base_url="http://penstock", headers=headers
    )


class Rendering:
    """Renderings that end when the test says so."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_end = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> Response:
        self.begun += 1
        number = self.begun
        await self.may_end.wait()
        if self.error is not None:
            raise self.error
        return Response(str(number))


async def until_begun(rendering: Rendering, count: int) -> None:
    async with asyncio.timeout(20):
        while rendering.begun < count:
            await asyncio.sleep(0)


async def test_requests_during_a_rendering_share_the_next_one() -> None:
    looks, rendering = SharedLooks(), Rendering()
    first = asyncio.create_task(looks.look("page", rendering))
    await until_begun(rendering, 1)
    others = [asyncio.create_task(looks.look("page", rendering)) for _ in range(10)]
    elsewhere = asyncio.create_task(looks.look("another page", Rendering()))
    await asyncio.sleep(2 * shared_renderings.APART)
    assert rendering.begun == 1
    rendering.may_end.set()
    assert (await first).body == b"1"
    assert {(await other).body for other in others} == {b"2"}
    assert rendering.begun == 2
    assert not elsewhere.done()
    elsewhere.cancel()


async def test_a_stream_that_leaves_takes_the_page_from_no_other() -> None:
    looks, rendering = SharedLooks(), Rendering()
    first = asyncio.create_task(looks.look("page", rendering))
    other = asyncio.create_task(looks.look("page", rendering))
    await until_begun(rendering, 1)
    first.cancel()  # it was to render it for both
    rendering.may_end.set()
    assert (await other).body == b"2"
    third = asyncio.create_task(looks.look("page", rendering))
    fourth = asyncio.create_task(looks.look("page", rendering))
    await asyncio.sleep(0)
    fourth.cancel()
    assert (await third).body == b"3"


async def test_a_failed_rendering_fails_only_its_waiters() -> None:
    looks, rendering = SharedLooks(), Rendering()
    rendering.error = ValueError("no page")
    rendering.may_end.set()
    said = await asyncio.gather(*(looks.look("page", rendering) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in said] == [ValueError] * 3
    rendering.error = None
    assert (await looks.look("page", rendering)).status_code == 200
    async with asyncio.timeout(20):
        while len(looks):  # nothing is kept of a page without a browser
            await asyncio.sleep(0.01)


async def test_looks_are_shared_by_callers_of_the_same_access(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: list[Any] = []
    real = execution_list.page

    async def counted(*given: Any, **more: Any) -> Any:
        pages.append(given)
        return await real(*given, **more)

    monkeypatch.setattr(execution_list, "page", counted)
    await api.token("looks at theirs", "viewer", tenants=("lookers",))
    start = {"action": "shop.count", "parameters": {"words": "a look"}}
    async with strict(api, "all") as call, strict(api, "looks at theirs") as theirs:
        mine = (await call.post("/api/v1/executions", json=start)).json()["id"]
        other = (await call.post("/api/v1/executions", json={**start, "tenant": "lookers"})).json()["id"]
        said = await asyncio.gather(
            *(call.get("/executions", headers=AGAIN) for _ in range(20)),
            theirs.get("/executions", headers=AGAIN),
        )
    assert len(pages) < 10
    *all_of_mine, of_theirs = [one.text for one in said]
    assert all(mine in text and other in text for text in all_of_mine)
    assert (mine in of_theirs, other in of_theirs) == (False, True)


async def test_nothing_that_changes_something_is_shared(api: Api) -> None:
    reasons = ["one of them", "the other"]
    async with strict(api, "all") as call:
        said = await asyncio.gather(
            *(
                call.post(
                    "/executions/many",
                    data={"does": "cancel", "action": "shop.no", "reason": one},
                    headers=AGAIN,
                )
                for one in reasons
            )
        )
    assert {one.status_code for one in said} == {200}
    noted = await api.house.rows("select reason from audit where reason = any($1::text[])", reasons)
    assert sorted(row["reason"] for row in noted) == sorted(reasons)


async def test_a_caller_without_access_is_shown_no_shared_look(api: Api) -> None:
    async with api.caller() as call:
        looks = [asyncio.create_task(call.get("/executions", headers=AGAIN)) for _ in range(5)]
        transport = httpx.ASGITransport(api.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://penstock") as stranger:
            said = await stranger.get("/executions", headers=AGAIN)
        assert (said.status_code, said.headers["location"].partition("?")[0]) == (303, "/sign-in")
        assert {(await look).status_code for look in looks} == {200}
