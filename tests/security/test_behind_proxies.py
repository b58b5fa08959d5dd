"""The API behind a real nginx: TLS, a path, a Host that is rewritten, HTTP/1.0 to the API, and buffering."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from argon2 import PasswordHasher

from penstock.errors import ConfigurationError
from penstock.operate import passwords, people
from penstock_api.app import make_app
from penstock_api.backend import Backend
from penstock_api.pages.page import ADMINISTRATION, MENU
from tests.penstock_api.conftest import Api
from tests.penstock_api.serving import serving
from tests.servers import choose
from tests.servers.nginx import WAYS, Nginx
from tests.servers.process import free_port

PATH = "/penstock"
PASSWORD = "correct horse battery staple"


@pytest.fixture(scope="module")
def upstream() -> int:
    return free_port()


@pytest.fixture(scope="module")
def nginx(upstream: int) -> Iterator[Nginx]:
    proxy = choose.private_nginx(upstream, PATH)
    yield proxy
    proxy.close()


@pytest.fixture(autouse=True)
async def ada(api: Api, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    quick = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    monkeypatch.setattr(passwords, "hasher", lambda: quick)
    await people.create(api.house.session, "ada", PASSWORD, ["developer"], by="test")
    yield
    await api.house.rows("delete from person")
    await api.house.rows("delete from login_failure")


@asynccontextmanager
async def browsing(api: Api, nginx: Nginx, upstream: int, way: str) -> AsyncIterator[httpx.AsyncClient]:
    """A browser at the proxy, before an API that knows its address and the proxy's."""
    settings = api.house.settings(api_address=nginx.address(way), trusted_proxies="127.0.0.1")
    backend = Backend.of(api.house.client)
    backend.settings = settings
    tls = ssl.create_default_context(cafile=str(nginx.certificate))
    async with (
        serving(make_app(backend), settings, port=upstream),
        httpx.AsyncClient(verify=tls, base_url=nginx.address(way), timeout=30) as browser,
    ):
        yield browser
    await backend.close()


def of_page(browser: httpx.AsyncClient) -> dict[str, str]:
    parts = urlsplit(str(browser.base_url))
    return {"origin": f"https://{parts.netloc}"}


async def sign_in(browser: httpx.AsyncClient) -> httpx.Response:
    form = {"name": "ada", "password": PASSWORD, "then": "/executions"}
    return await browser.post("/sign-in", data=form, headers=of_page(browser))


@pytest.mark.parametrize("way", WAYS)
async def test_buttons_cookies_and_redirects_work_behind_nginx(
    api: Api, nginx: Nginx, upstream: int, way: str
) -> None:
    async with browsing(api, nginx, upstream, way) as browser:
        refusal = await browser.get("/executions", headers={"accept": "text/html"})
        assert (refusal.status_code, refusal.headers["location"].split("?")[0]) == (303, f"{PATH}/sign-in")
        entered = await sign_in(browser)
        assert (entered.status_code, entered.headers["location"]) == (303, f"{PATH}/executions")
        cookie = entered.headers["set-cookie"]
        assert cookie.startswith("__Secure-penstock_session=")
        assert f"Path={PATH}/;" in cookie
        body = {"action": "shop.count", "parameters": {"words": "x"}}
        started = await browser.post("/api/v1/executions", json=body, headers=of_page(browser))
        assert started.status_code == 201, started.text
        assert started.headers["location"] == f"{PATH}/api/v1/executions/{started.json()['id']}"
        forged = {"origin": "https://evil.example"}
        assert (await browser.post("/api/v1/executions", json=body, headers=forged)).status_code == 403
        sign_out = await browser.post("/sign-out", headers=of_page(browser))
        assert sign_out.headers["location"] == f"{PATH}/sign-in"


@pytest.mark.parametrize("way", WAYS)
async def test_every_link_of_a_page_is_below_the_path(
    api: Api, nginx: Nginx, upstream: int, way: str
) -> None:
    """Each address that a page names is asked for, as a browser would ask."""
    async with browsing(api, nginx, upstream, way) as browser:
        await sign_in(browser)
        at = urlsplit(str(browser.base_url))
        start = [
            *(place.path for place in MENU if place.group != ADMINISTRATION),  # ada administers nothing
            "/docs",
            "/sign-in",
        ]
        links: set[str] = set()
        for page in start:
            answer = await browser.get(page, headers={"accept": "text/html"})
            assert answer.status_code == 200, (page, answer.text[:200])
            where = f"https://{at.netloc}{PATH}{page}"
            for kind, named in re.findall(r'\b(href|src|action|data-log)="([^"#][^"]*)"', answer.text):
                if urlsplit(named).scheme in ("http", "https", "data"):
                    continue
                address = urlsplit(urljoin(where, named.replace("&amp;", "&")))
                assert address.path.startswith(f"{PATH}/"), (page, kind, named)
                if kind != "action":
                    links.add(address.path[len(PATH) :] + (f"?{address.query}" if address.query else ""))
            assert f'data-base="{PATH}"' in answer.text or page == "/docs"
        assert len(links) > 20
        for link in sorted(links):
            answer = await browser.get(link, headers={"accept": "text/html"})
            assert answer.status_code in (200, 303), (link, answer.status_code, answer.text[:200])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", ["/api/v1/stream?seconds=60", "/executions"])
async def test_stream_arrives_at_once_through_nginx(
    api: Api, nginx: Nginx, upstream: int, way: str, path: str
) -> None:
    """The stream lasts a minute; its first words come long before, though nginx buffers."""
    async with browsing(api, nginx, upstream, way) as browser:
        await sign_in(browser)
        async with (
            asyncio.timeout(30),
            browser.stream("GET", path, headers={"accept": "text/event-stream"}) as stream,
        ):
            assert stream.status_code == 200
            async for part in stream.aiter_raw():
                if b"watching" in part or b"event: page" in part:
                    break


async def test_trusted_proxy_names_the_caller(api: Api, nginx: Nginx, upstream: int) -> None:
    async with browsing(api, nginx, upstream, "kept") as browser:
        for forwarded in ("192.0.2.7", "198.51.100.1, 192.0.2.8"):
            body = {"name": "nobody", "password": PASSWORD}
            headers = {**of_page(browser), "x-forwarded-for": forwarded}
            assert (await browser.post("/api/v1/session", json=body, headers=headers)).status_code == 401
        # The browser is on 127.0.0.1, which is trusted too: the last address that is not counts.
        addresses = {row["address"] for row in await api.house.rows("select address from login_failure")}
        assert addresses == {"192.0.2.7", "192.0.2.8"}


async def test_other_machine_is_not_believed(api: Api) -> None:
    settings = api.house.settings(trusted_proxies="10.0.0.0/8")
    async with serving(api.app, settings) as address, httpx.AsyncClient(base_url=address) as client:
        body = {"name": "nobody", "password": PASSWORD}
        await client.post("/api/v1/session", json=body, headers={"x-forwarded-for": "192.0.2.7"})
        [row] = await api.house.rows("select address from login_failure")
        assert row["address"] == "127.0.0.1"


@pytest.mark.parametrize("path", ["/api", "/docs/penstock", "/executions"])
def test_path_of_penstock_itself_is_refused(api: Api, path: str) -> None:
    backend = Backend.of(api.house.client)
    backend.settings = api.house.settings(api_address=f"https://example.org{path}")
    with pytest.raises(ConfigurationError, match="PENSTOCK_API_ADDRESS"):
        make_app(backend)


@pytest.mark.parametrize(
    "address", ["example.org", "ftp://example.org", "https://example.org/?a=b", "https://"]
)
def test_malformed_address_is_refused(api: Api, address: str) -> None:
    with pytest.raises(ValueError, match="api_address"):
        api.house.settings(api_address=address)
