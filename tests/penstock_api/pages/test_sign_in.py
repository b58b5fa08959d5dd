"""The access to pages: they ask for a token, keep it where no script reads it, and show what its holder may see and do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from penstock.operate import people
from tests.penstock_api.conftest import THEIRS, Api

HTML = {"accept": "text/html", "sec-fetch-site": "same-origin"}
"""What a browser says of itself with what a page of this host asks."""
SHARED = ("/schedules", "/limits", "/dead-letters", "/workers")


@asynccontextmanager
async def visitor(api: Api, *, token: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """A browser without scripts, signed in with a token of that name."""
    transport = httpx.ASGITransport(api.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://penstock", headers=HTML) as client:
        if token is not None:
            entered = await client.post("/sign-in", data={"token": api.secrets[token], "then": "/"})
            assert entered.status_code == 303
        yield client


async def test_a_signed_out_visitor_signs_in_and_returns(api: Api) -> None:
    async with visitor(api) as client:
        sent = await client.get("/executions?status=failed")
        assert sent.status_code == 303
        assert sent.headers["location"] == "/sign-in?then=%2Fexecutions%3Fstatus%3Dfailed"
        form = await client.get(sent.headers["location"])
        assert 'value="/executions?status=failed"' in form.text
        refused = await client.post("/sign-in", data={"token": "pst_wrong", "then": "/"})
        assert refused.status_code == 401
        assert "set-cookie" not in refused.headers
        entered = await client.post(
            "/sign-in", data={"token": api.secrets["all"], "then": "/executions?status=failed"}
        )
        assert entered.headers["location"] == "/executions?status=failed"
        kept = entered.headers["set-cookie"].lower()
        assert "httponly" in kept
        assert "samesite=strict" in kept
        assert (await client.get(entered.headers["location"])).status_code == 200
        assert (await client.get("/api/v1/executions")).status_code == 200
        await client.post("/sign-out")
        assert (await client.get("/")).status_code == 303


async def test_people_sign_in_with_a_password_and_their_session_ends_with_them(api: Api) -> None:
    await people.create(api.house.session, "ada", "a password of hers", ["operator"], by="test")
    async with visitor(api) as client:
        refused = await client.post("/sign-in", data={"name": "ada", "password": "a guess", "then": "/"})
        assert refused.status_code == 401
        assert 'role="alert"' in refused.text
        entered = await client.post("/sign-in", data={"name": "ada", "password": "a password of hers"})
        assert entered.status_code == 303
        seen = await client.get("/")
        assert "user:ada" in seen.text
        kept = dict(client.cookies)
        await client.post("/sign-out")
        assert (await client.get("/")).status_code == 303
        client.cookies.update(kept)
        assert (await client.get("/")).status_code == 303
    await api.house.rows("delete from person where name = 'ada'")


@pytest.mark.parametrize(
    "then", ["//evil.example", "https://evil.example", "/\\evil.example", "/a\r\nb: c", ""]
)
async def test_a_sign_in_leads_to_no_other_site(api: Api, then: str) -> None:
    async with visitor(api) as client:
        entered = await client.post("/sign-in", data={"token": api.secrets["all"], "then": then})
    assert entered.headers["location"] == "/"


async def test_pages_of_other_origins_change_nothing_with_somebodys_cookie(api: Api) -> None:
    id = await api.house.client.start("shop.count", {"words": "a"}, delay=600)
    elsewhere = ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"})
    async with visitor(api, token="all") as client:
        for headers in elsewhere:
            for path in ("/executions/many", "/dead-letters/many", "/sign-in", "/sign-out"):
                assert (await client.post(path, data={"does": "cancel"}, headers=headers)).status_code == 403
            answer = await client.post(f"/api/v1/executions/{id}/cancel", json={}, headers=headers)
            assert answer.status_code == 403
    assert await api.house.rows("select 1 from execution where id = $1 and status = 'requested'", id)
    await api.house.client.cancel(id)


async def test_a_read_only_token_sees_no_buttons_and_cannot_post(api: Api) -> None:
    await api.token("reader", "viewer")
    id = await api.house.client.start("shop.count", {"words": "a"}, delay=600)
    async with visitor(api, token="reader") as client:
        for path in (
            f"/executions/{id}",
            "/executions",
            "/actions/shop.count",
            "/limits/shop.door",
            "/events",
        ):
            seen = await client.get(path)
            assert seen.status_code == 200
            assert "data-api" not in seen.text
            assert "/many" not in seen.text
        assert (await client.post("/executions/many", data={"does": "cancel"})).status_code == 403
    await api.house.client.cancel(id)


async def test_a_token_of_a_tenant_sees_only_that_tenant(api: Api) -> None:
    await api.token("of theirs", "operator", tenants=(THEIRS,))
    ours = await api.house.client.start("shop.count", {"words": "secretly ours"})
    theirs = await api.house.client.start("shop.count", {"words": "of theirs"}, tenant=THEIRS)
    for id in (ours, theirs):
        await api.house.client.result(id, timeout=30)
    async with visitor(api, token="of theirs") as client:
        for path in ("/", "/executions"):
            listed = (await client.get(path)).text
            assert str(theirs) in listed
            assert str(ours) not in listed
            assert not any(f'href="{shared}"' in listed for shared in SHARED)
        assert (await client.get(f"/executions/{ours}")).status_code == 404
        assert (await client.post(f"/executions/{ours}/lines", json={"after": {}})).status_code == 404
        for path in SHARED:
            assert (await client.get(path)).status_code == 403
        counted = await client.get("/executions/many", params={"does": "rerun"})
        assert "If you confirm, <b>1</b> execution will be rerun" in counted.text
        assert (await client.get("/executions", params={"tenant": "public"})).status_code == 403


async def test_an_impossible_address_is_a_page_with_the_reason(api: Api) -> None:
    async with visitor(api, token="all") as client:
        for path, status, says in (
            ("/executions?status=sleeping", 422, "unknown status &#39;sleeping&#39;"),
            ("/executions?since=yesterday", 422, "is neither an instant nor an age"),
            ("/executions/not-an-id", 422, "path.id"),
            ("/actions/shop.nothing", 404, "shop.nothing"),
            ("/executions/many?does=explode", 422, "there is no operation"),
        ):
            seen = await client.get(path)
            assert (seen.status_code, says in seen.text) == (status, True), (path, seen.text[-600:])
            assert seen.headers["content-type"].startswith("text/html")
