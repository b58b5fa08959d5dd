"""The sign-in with an identity provider of the tests: the people that are let in, their names, and their rights."""

from __future__ import annotations

import re
from html import unescape

import httpx
import pytest

from penstock.operate import people
from tests.penstock_api.conftest import Api
from tests.penstock_api.pages.provider import (
    ADA,
    CLIENT,
    NAME,
    Provider,
    app_of,
    browser_of,
    is_nobody,
    says,
    sign_in,
)


async def test_a_person_with_a_mapped_role_enters_and_returns(
    api: Api, provider: Provider, person: httpx.AsyncClient
) -> None:
    page = await person.get("/sign-in?then=/executions")
    assert 'href="/sign-in/provider?then=%2Fexecutions"' in page.text
    assert "form-action 'self'" in page.headers["content-security-policy"]
    entered = await sign_in(person, provider)
    assert (entered.status_code, entered.headers["location"]) == (303, "/executions")
    assert "penstock_sign_in" not in person.cookies
    for cookie in entered.headers.get_list("set-cookie"):
        assert "HttpOnly" in cookie
    assert (await person.get("/executions")).status_code == 200
    who = (await person.get("/api/v1/session")).json()
    assert who["name"] == f"user:{NAME}"
    [kept] = [one for one in await api.house.rows("select * from person") if one["name"] == NAME]
    assert kept["created_by"] == f"{provider.issuer} {ADA['sub']}"
    roles = await api.house.rows("select role, tenant from person_role where person = $1", kept["id"])
    assert {tuple(row) for row in roles} == {("operator", "acme"), ("viewer", "")}
    noted = await api.house.rows(
        "select operation, reason from audit where by = $1 order by id desc limit 1", f"user:{NAME}"
    )
    assert [tuple(row) for row in noted] == [("users_log_in", provider.issuer)]
    before = dict(person.cookies)
    assert (await sign_in(person, provider)).status_code == 303
    async with browser_of(person._transport.app) as old:  # type: ignore[attr-defined]
        old.cookies.update(before)
        assert await is_nobody(old)
    left = await person.post("/sign-out", headers={"sec-fetch-site": "same-origin"})
    assert left.status_code == 303
    assert await is_nobody(person)


async def test_roles_are_those_of_the_latest_claim_and_end_with_it(
    api: Api, provider: Provider, person: httpx.AsyncClient
) -> None:
    await sign_in(person, provider)
    provider.person["groups"] = ["admin", "administrator", "Ops", {"ops": 1}]
    async with browser_of(person._transport.app) as other:  # type: ignore[attr-defined]
        refused = await sign_in(other, provider)
        assert refused.status_code == 403
        assert "no claim of this user is mapped to a role" in says(refused)
        assert "PENSTOCK_OIDC_ROLES" in says(refused)
        assert await is_nobody(other)
    person._transport.app.state.backend.forget_callers()  # type: ignore[attr-defined]
    assert await is_nobody(person)
    kept = "select 1 from person_role r join person p on p.id = r.person where p.name = $1"
    assert await api.house.rows(kept, NAME) == []
    del provider.person["groups"]
    provider.person |= {"sub": "new", "email": "bob@example.org"}
    assert (await sign_in(person, provider)).status_code == 403
    assert await api.house.rows("select 1 from person where name = 'bob@example.org'") == []


async def test_a_claim_may_lie_deeper_and_another_may_be_the_name(api: Api, provider: Provider) -> None:
    app = app_of(api, provider, oidc_roles_claim="realm.roles", oidc_name_claim="login")
    provider.person["login"] = "ada"
    async with browser_of(app) as person:
        assert (await sign_in(person, provider)).status_code == 303
        who = (await person.get("/api/v1/session")).json()
        assert (who["name"], who["scopes"], who["tenants"]) == (
            "user:ada",
            ["define", "operate", "read"],
            ["acme"],
        )
        provider.person["login"] = "a name/with more"
        assert "is not a valid user name in Penstock" in says(await sign_in(person, provider))
        del provider.person["login"]
        assert "PENSTOCK_OIDC_NAME_CLAIM" in says(await sign_in(person, provider))


async def test_an_equal_name_does_not_give_access_to_another_user(
    api: Api, provider: Provider, person: httpx.AsyncClient
) -> None:
    await people.create(api.house.session, NAME, "a password of hers", ["administrator"], by="test")
    refused = await sign_in(person, provider)
    assert refused.status_code == 409
    assert f"penstock users delete {NAME}" in says(refused)
    await people.delete(api.house.session, NAME)
    assert (await sign_in(person, provider)).status_code == 303
    provider.person["sub"] = "somebody else with her old address"
    async with browser_of(person._transport.app) as other:  # type: ignore[attr-defined]
        assert (await sign_in(other, provider)).status_code == 409
        assert await is_nobody(other)
        for password in ("", "!", "a password of hers"):
            tried = await other.post(
                "/sign-in",
                data={"name": NAME, "password": password},
                headers={"sec-fetch-site": "same-origin"},
            )
            assert tried.status_code in (401, 422)
    provider.person |= {"sub": "third", "email": "carl@example.org", "email_verified": False}
    assert "not verified" in says(await sign_in(person, provider))


async def leave(person: httpx.AsyncClient) -> httpx.Response:
    return await person.post("/sign-out", headers={"sec-fetch-site": "same-origin"})


async def test_sign_out_leads_to_the_provider(
    api: Api, provider: Provider, person: httpx.AsyncClient
) -> None:
    provider.end_session = f"{provider.issuer}/sign-out?realm=main"
    await sign_in(person, provider)
    [row] = await api.house.rows("select id_token from person_session")
    left = await leave(person)
    assert left.status_code == 200
    [address] = re.findall(r'content="0; url=([^"]+)"', left.text)
    async with httpx.AsyncClient() as browser:
        back = await browser.get(unescape(address))
    assert back.headers["location"] == "http://penstock/sign-in"
    assert provider.signed_out == [
        {
            "realm": "main",
            "id_token_hint": row["id_token"],
            "client_id": CLIENT,
            "post_logout_redirect_uri": "http://penstock/sign-in",
        }
    ]
    assert await is_nobody(person)


@pytest.mark.parametrize(
    "end_session", [None, "http://elsewhere.example/sign-out", "javascript:alert(1)", "down"]
)
async def test_sign_out_ends_here_where_the_provider_takes_no_part(
    api: Api, provider: Provider, person: httpx.AsyncClient, end_session: str | None
) -> None:
    provider.end_session = end_session
    if end_session == "down":
        provider.end_session = f"{provider.issuer}/sign-out"
    await sign_in(person, provider)
    if end_session == "down":
        provider.down = True
        person._transport.app.state.provider._described = None  # type: ignore[attr-defined]
    left = await leave(person)
    assert (left.status_code, left.headers["location"]) == (303, "/sign-in")
    assert await is_nobody(person)


async def test_sign_out_with_a_password_stays_here(
    api: Api, provider: Provider, person: httpx.AsyncClient
) -> None:
    provider.end_session = f"{provider.issuer}/sign-out"
    await people.create(api.house.session, "bob", "a password of his", ["viewer"], by="test")
    entered = await person.post(
        "/sign-in",
        data={"name": "bob", "password": "a password of his"},
        headers={"sec-fetch-site": "same-origin"},
    )
    assert entered.status_code == 303
    assert (await leave(person)).headers["location"] == "/sign-in"
