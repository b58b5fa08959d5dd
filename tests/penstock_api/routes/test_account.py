"""A person's own account: the password and the sessions, out of reach of all others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from argon2 import PasswordHasher

from penstock.operate import passwords, people
from tests.penstock_api.conftest import Api
from tests.penstock_api.routes.test_users import COOKIE, PAGE, PASSWORD, V1, log_in

NEW = "another horse and battery"
ACCOUNT = f"{V1}/account"


@pytest.fixture(autouse=True)
async def ada(api: Api, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Create two users with passwords that are hashed in no time."""
    quick = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    monkeypatch.setattr(passwords, "hasher", lambda: quick)
    await people.create(api.house.session, "ada", PASSWORD, ["viewer"], by="test")
    await people.create(api.house.session, "bob", PASSWORD, ["viewer"], ["acme"], by="test")
    yield
    await api.house.rows("delete from person")
    await api.house.rows("delete from login_failure")


@pytest.fixture
async def browser(api: Api) -> AsyncIterator[httpx.AsyncClient]:
    async with api.caller(None) as client:
        client.headers.update({**PAGE, "user-agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"})
        yield client


async def change(browser: httpx.AsyncClient, current: str, new: str) -> httpx.Response:
    return await browser.put(
        f"{ACCOUNT}/password", json={"current_password": current, "password": new}, headers=PAGE
    )


async def is_in(browser: httpx.AsyncClient) -> bool:
    return (await browser.get(f"{V1}/session")).status_code == 200


async def test_changed_password_ends_other_sessions_alone(api: Api, browser: httpx.AsyncClient) -> None:
    await log_in(browser)
    async with api.caller(None) as other, api.caller(None) as bob:
        await log_in(other)
        await log_in(bob, "bob")
        assert await is_in(other)
        wrong = await change(browser, NEW, NEW)
        assert (wrong.status_code, wrong.json()["detail"]) == (403, "this is not your password")
        assert (await change(browser, PASSWORD, "short")).status_code == 422
        assert await is_in(other)
        changed = await change(browser, PASSWORD, NEW)
        assert (changed.status_code, changed.json()) == (200, {"ended": 1}), changed.text
        assert (await is_in(browser), await is_in(other), await is_in(bob)) == (True, False, True)
        assert (await log_in(other)).status_code == 401
        assert (await log_in(other, password=NEW)).status_code == 200
        assert (await log_in(other, "bob")).status_code == 200
    rows = await api.house.rows(
        "select outcome, details from audit where by = 'user:ada' and operation = 'account_change_password' order by id"
    )
    assert [row["outcome"] for row in rows] == ["refused", "done"], [tuple(row) for row in rows]
    assert '"ended":1' in rows[-1]["details"]
    assert not [row for row in rows if NEW in row["details"] or PASSWORD in row["details"]]


async def test_wrong_current_passwords_are_bounded_as_log_ins(
    api: Api, browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "MOST_OF_BOTH", 3)
    await log_in(browser)
    for n in range(3):
        assert (await change(browser, f"wrong horse battery {n}", NEW)).status_code == 403
    held = await change(browser, PASSWORD, NEW)
    assert (held.status_code, held.headers["retry-after"]) == (429, "900")
    async with api.caller(None) as other:
        assert (await log_in(other)).status_code == 429


async def test_password_set_meanwhile_is_not_overwritten(
    api: Api, browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An administrator sets a password between the verification and the change."""
    await log_in(browser)
    verified = people.prove_password

    async def prove(*args: Any, **more: Any) -> str:
        hashed = await verified(*args, **more)
        await people.set_password(api.house.session, "ada", "set by an administrator")
        return hashed

    monkeypatch.setattr(people, "prove_password", prove)
    assert (await change(browser, PASSWORD, NEW)).status_code == 409
    assert (await log_in(browser, password="set by an administrator")).status_code == 200


async def test_person_of_a_provider_has_no_password_here(api: Api, browser: httpx.AsyncClient) -> None:
    await log_in(browser)
    await api.house.rows("update person set password = '' where name = 'ada'")
    answer = await change(browser, "", NEW)
    assert (answer.status_code, "identity provider" in answer.json()["detail"]) == (409, True)


async def test_own_sessions_are_listed_and_ended(api: Api, browser: httpx.AsyncClient) -> None:
    await log_in(browser)
    async with api.caller(None) as other, api.caller(None) as third, api.caller(None) as bob:
        for client, name in ((other, "ada"), (third, "ada"), (bob, "bob")):
            client.headers.update(PAGE)
            await log_in(client, name)
        listed = (await browser.get(f"{ACCOUNT}/sessions")).json()
        assert [row["current"] for row in listed] == [False, False, True]
        assert (listed[2]["address"], "Firefox" in listed[2]["browser"]) == ("127.0.0.1", True)
        assert browser.cookies[COOKIE] not in str(listed)
        [foreign] = (await bob.get(f"{ACCOUNT}/sessions")).json()
        assert (await browser.delete(f"{ACCOUNT}/sessions/{foreign['id']}")).status_code == 404
        assert await is_in(bob)
        assert (await browser.delete(f"{ACCOUNT}/sessions/{listed[0]['id']}")).status_code == 204
        assert (await is_in(other), await is_in(third)) == (True, False)
        assert (await browser.delete(f"{ACCOUNT}/sessions")).json() == {"ended": 1}
        assert (await is_in(browser), await is_in(other), await is_in(bob)) == (True, False, True)
        await api.house.rows("update person_session set seen_at = seen_at - interval '13 hours'")
        assert await people.open_sessions(api.house.session, "ada") == []
    operations = await api.house.rows(
        "select operation, outcome from audit where by = 'user:ada' and operation like 'account_end%' order by id"
    )
    assert [tuple(row) for row in operations] == [
        ("account_end_session", "done"),
        ("account_end_other_sessions", "done"),
    ]


async def test_a_token_has_no_account(api: Api, call: httpx.AsyncClient) -> None:
    listed = await call.get(f"{ACCOUNT}/sessions")
    assert (listed.status_code, "has no account page" in listed.json()["detail"]) == (404, True)
    assert (await change(call, PASSWORD, NEW)).status_code == 404
    assert "a token, which has no password" in (await call.get("/account")).text


async def test_account_page_names_browsers_and_marks_this_one(api: Api, browser: httpx.AsyncClient) -> None:
    await log_in(browser)
    async with api.caller(None) as other:
        other.headers["user-agent"] = "curl/8.14.1 <b>"
        await log_in(other)
    page = (await browser.get("/account")).text
    assert "Firefox on Linux <span" in page
    assert page.count("this one") == 1
    assert ">curl/8.14.1" in page
    assert "<b>" not in page
    assert 'href="/account" aria-current="page">user:ada' in page
