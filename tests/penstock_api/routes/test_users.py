"""The sign-in of people with a password, the rights of a session, and its protection against others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from argon2 import PasswordHasher

from penstock.operate import passwords, people
from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.penstock_api.conftest import Api

V1 = "/api/v1"
PASSWORD = "correct horse battery staple"
PAGE = {"origin": "http://penstock", "sec-fetch-site": "same-origin"}
COOKIE = "penstock_session"


@pytest.fixture(autouse=True)
async def ada(api: Api, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Return a user with a password that is hashed in no time."""
    quick = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    monkeypatch.setattr(passwords, "hasher", lambda: quick)
    await people.create(api.house.session, "ada", PASSWORD, ["operator"], by="test")
    yield
    await api.house.rows("delete from person")
    await api.house.rows("delete from login_failure")


async def log_in(browser: httpx.AsyncClient, name: str = "ada", password: str = PASSWORD) -> httpx.Response:
    return await browser.post(f"{V1}/session", json={"name": name, "password": password}, headers=PAGE)


def with_cookie(secret: str) -> dict[str, str]:
    return {"cookie": f"{COOKIE}={secret}"}


async def start(browser: httpx.AsyncClient, **headers: str) -> int:
    body: dict[str, Any] = {"action": "shop.count", "parameters": {"words": "x"}}
    return (await browser.post(f"{V1}/executions", json=body, headers=headers)).status_code


async def test_a_session_is_begun_used_and_ended(api: Api) -> None:
    async with api.caller(None) as browser:
        begun = await log_in(browser)
        assert begun.status_code == 200, begun.text
        cookie = begun.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert "path=/" in cookie
        who = (await browser.get(f"{V1}/session")).json()
        assert who == {"name": "user:ada", "scopes": ["operate", "read"], "tenants": None}
        assert await start(browser, **PAGE) == 201
        [origin] = await api.house.rows(
            "select origin ->> 'by' as by from payload where origin ->> 'by' = 'user:ada'"
        )
        assert origin["by"] == "user:ada"
        kept = await api.house.rows("select s::text from person_session s, person p")
        assert browser.cookies[COOKIE] not in kept[0][0]
        secret = browser.cookies[COOKIE]
        assert (await browser.delete(f"{V1}/session", headers=PAGE)).status_code == 204
        assert (await browser.get(f"{V1}/session")).status_code == 401
        assert (await browser.get(f"{V1}/session", headers=with_cookie(secret))).status_code == 401


async def test_no_other_site_changes_anything_with_a_session(api: Api) -> None:
    async with api.caller(None) as browser:
        await log_in(browser)
        before = await api.house.rows("select count(*) from execution")
        for forged in (
            {},
            {"origin": "http://evil.example"},
            {"origin": "null"},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site", "origin": "http://penstock"},
            {"sec-fetch-site": "none"},
        ):
            assert await start(browser, **forged) == 403, forged
            ended = await browser.delete(f"{V1}/session", headers=forged)
            assert ended.status_code == 403, forged
        assert await api.house.rows("select count(*) from execution") == before
        assert (await browser.get(f"{V1}/session")).status_code == 200
        foreign = {"origin": "http://evil.example", "sec-fetch-site": "cross-site"}
        said = {"name": "ada", "password": PASSWORD}
        assert (await browser.post(f"{V1}/session", json=said, headers=foreign)).status_code == 403


async def test_a_log_in_gets_a_session_of_an_unknown_secret(api: Api) -> None:
    planted = "planted-by-somebody-else"
    said = {"name": "ada", "password": PASSWORD}
    async with api.caller(None) as browser:
        known = [planted]
        for _ in range(2):
            headers = {**PAGE, **with_cookie(known[-1])}
            await browser.post(f"{V1}/session", json=said, headers=headers)
            known.append(browser.cookies[COOKIE])
            browser.cookies.clear()
    assert len(set(known)) == 3
    async with api.caller(None) as thief:
        found = [(await thief.get(f"{V1}/session", headers=with_cookie(one))).status_code for one in known]
    assert found == [401, 401, 200]


async def test_a_token_is_no_cookie_and_a_session_is_no_token(api: Api) -> None:
    async with api.caller(None) as browser:
        await log_in(browser)
        secret = browser.cookies[COOKIE]
    async with api.caller(None) as other:
        as_token = {"authorization": f"Bearer {secret}"}
        assert (await other.get(f"{V1}/session", headers=as_token)).status_code == 401
        as_cookie = with_cookie(api.secrets["all"])
        assert (await other.get(f"{V1}/session", headers=as_cookie)).status_code == 401


async def test_roles_hold_for_their_tenants_and_for_no_others(api: Api, call: httpx.AsyncClient) -> None:
    both = {"roles": ["operator"], "tenants": ["acme"]}
    assert (await call.put(f"{V1}/users/ada/roles", json=both)).status_code == 200
    viewer = {"roles": ["viewer"], "tenants": []}
    made = (await call.put(f"{V1}/users/ada/roles", json=viewer)).json()
    assert list(zip(made["roles"], made["tenants"], strict=True)) == [("viewer", ""), ("operator", "acme")]
    async with api.caller(None) as browser:
        await log_in(browser)
        assert (await browser.get(f"{V1}/workers")).status_code == 200
        assert await start(browser, **PAGE) == 403
        body = {"action": "shop.count", "parameters": {"words": "x"}, "tenant": "acme"}
        mine = await browser.post(f"{V1}/executions", json=body, headers=PAGE)
        assert mine.status_code == 201
        theirs = await api.house.client.start("shop.charge", {"order": 1}, delay=3600)
        assert (await browser.get(f"{V1}/executions/{theirs}")).status_code == 200
        assert (await browser.post(f"{V1}/executions/{theirs}/cancel", headers=PAGE)).status_code == 403
        secret = {"action": "shop.count", "secrets": {"words": "pin"}, "tenant": "acme"}
        assert (await browser.post(f"{V1}/executions", json=secret, headers=PAGE)).status_code == 403
        assert (await browser.get(f"{V1}/users")).status_code == 403
        await call.put(f"{V1}/users/ada/password", json={"password": "another horse and battery"})
        assert (await browser.get(f"{V1}/session")).status_code == 401
        assert (await log_in(browser)).status_code == 401
        assert (await log_in(browser, password="another horse and battery")).status_code == 200
        assert (await call.delete(f"{V1}/users/ada")).status_code == 204
        assert (await browser.get(f"{V1}/session")).status_code == 401
    await api.house.client.cancel(theirs)


async def test_a_guesser_has_to_wait_and_learns_nothing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "MOST_OF_BOTH", 3)
    async with api.caller(None) as guesser:
        wrong = [await log_in(guesser, password=f"wrong horse battery {n}") for n in range(3)]
        nobody = await log_in(guesser, "nobody", PASSWORD)
        assert [one.status_code for one in (*wrong, nobody)] == [401] * 4
        assert wrong[0].json()["detail"] == nobody.json()["detail"]
        held = await log_in(guesser)
        assert (held.status_code, held.headers["retry-after"]) == (429, "900")
        await api.house.rows("update login_failure set at = at - interval '16 minutes'")
        assert (await log_in(guesser)).status_code == 200
        assert await api.house.rows("select 1 from login_failure") == []


async def test_an_unused_session_ends(api: Api) -> None:
    async with api.caller(None) as browser:
        for column, past in (("seen_at", "13 hours"), ("expires_at", "8 days")):
            await log_in(browser)
            assert (await browser.get(f"{V1}/session")).status_code == 200
            await api.house.rows(f"update person_session set {column} = {column} - interval '{past}'")
            Backend.forget_callers(api.app.state.backend)
            assert (await browser.get(f"{V1}/session")).status_code == 401


async def test_the_cookie_goes_over_tls_alone_but_on_this_machine(api: Api) -> None:
    for given, secure in (
        ({"api_host": "0.0.0.0"}, True),
        ({"api_address": "https://penstock.example.org"}, True),
        ({"api_address": "http://penstock"}, False),
        ({}, False),
    ):
        backend = Backend.of(api.house.client)
        backend.settings = api.house.settings(**given)
        transport = httpx.ASGITransport(make_app(backend))
        async with httpx.AsyncClient(transport=transport, base_url="http://penstock") as browser:
            cookie = (await log_in(browser)).headers["set-cookie"]
        assert cookie.startswith("__Host-" if secure else COOKIE)
        assert ("; Secure" in cookie) is secure


@pytest.mark.parametrize(
    ("name", "password", "roles"),
    [
        ("a b", PASSWORD, ["viewer"]),
        ("bob", "short", ["viewer"]),
        ("bob", f"{PASSWORD}\n{PASSWORD}", ["viewer"]),
        ("bob", f"{PASSWORD}\x1b[A", ["viewer"]),
        ("bob", f"{PASSWORD}\u2028", ["viewer"]),
        ("bob", PASSWORD, ["root"]),
        ("bob", PASSWORD, []),
    ],
)
async def test_an_invalid_user_is_refused(
    call: httpx.AsyncClient, name: str, password: str, roles: list[str]
) -> None:
    made = await call.post(f"{V1}/users", json={"name": name, "password": password, "roles": roles})
    assert made.status_code == 422
    assert PASSWORD not in made.text


async def test_password_with_a_line_break_is_set_at_no_door(api: Api, call: httpx.AsyncClient) -> None:
    bad = f"{PASSWORD}\n"
    assert (await call.put(f"{V1}/users/ada/password", json={"password": bad})).status_code == 422
    async with api.caller(None) as browser:
        assert (await log_in(browser)).status_code == 200
        own = {"current_password": PASSWORD, "password": bad}
        refused = await browser.put(f"{V1}/account/password", json=own, headers=PAGE)
        assert (refused.status_code, "one line" in refused.text) == (422, True), refused.text
        assert (await log_in(browser)).status_code == 200


async def test_two_of_one_name_cannot_be(call: httpx.AsyncClient) -> None:
    again = {"name": "ada", "password": PASSWORD, "roles": ["viewer"]}
    assert (await call.post(f"{V1}/users", json=again)).status_code == 409
    assert "$argon2" not in (await call.get(f"{V1}/users")).text
