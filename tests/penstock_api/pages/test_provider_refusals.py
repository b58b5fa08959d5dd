"""The vain answers of an identity provider, or of a pretender: a page gives the reason and the remedy."""

from __future__ import annotations

import base64
import re
import time
from typing import Any

import httpx
import orjson
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey
from pydantic import SecretStr, ValidationError

from penstock.errors import ConfigurationError
from penstock.operate import people
from penstock.settings import Settings
from tests.penstock_api.conftest import Api
from tests.penstock_api.pages.provider import (
    CLIENT,
    NAME,
    SECRET,
    Provider,
    app_of,
    browser_of,
    is_nobody,
    key,
    says,
    sent,
    settings,
    sign_in,
)

BACK = "/sign-in/provider/back"


def unsigned(claims: dict[str, Any]) -> str:
    parts = (orjson.dumps({"alg": "none"}), orjson.dumps(claims))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


SECRET_KEY = OctKey.import_key(SECRET.encode() * 3)
LIES: dict[str, Any] = {
    "another nonce": {"spoil": lambda claims: claims.update(nonce="x" * 43)},
    "no nonce": {"spoil": lambda claims: claims.pop("nonce")},
    "another audience": {"spoil": lambda claims: claims.update(aud="another client")},
    "an audience besides": {"spoil": lambda claims: claims.update(aud=[CLIENT, "b"], azp="b")},
    "another issuer": {"spoil": lambda claims: claims.update(iss="https://evil.example")},
    "expired": {"spoil": lambda claims: claims.update(exp=int(time.time()) - 120)},
    "no expiry": {"spoil": lambda claims: claims.pop("exp")},
    "no subject": {"spoil": lambda claims: claims.pop("sub")},
    "from the future": {"spoil": lambda claims: claims.update(iat=int(time.time()) + 600)},
    "not signed": {"sign": unsigned},
    "a secret for a key": {"sign": lambda claims: jwt.encode({"alg": "HS256"}, claims, SECRET_KEY)},
    "a stranger's key": {"sign": lambda claims: jwt.encode({"alg": "RS256", "kid": "x"}, claims, key())},
    "garbled": {"sign": lambda _: "a.b.c"},
}


@pytest.mark.parametrize("lie", LIES)
async def test_an_untrustworthy_token_admits_no_person(
    api: Api, provider: Provider, person: httpx.AsyncClient, lie: str
) -> None:
    for name, value in LIES[lie].items():
        setattr(provider, name, value)
    refused = await sign_in(person, provider)
    assert refused.status_code == 401
    assert "is not valid" in says(refused)
    assert "Begin again" in says(refused)
    assert await is_nobody(person)
    assert await api.house.rows("select 1 from person where name = $1", NAME) == []


async def test_only_the_answer_to_this_request_is_taken_and_once(
    api: Api, provider: Provider, person: httpx.AsyncClient
) -> None:
    back = provider.go(await sent(person))
    forged = re.sub(r"state=[^&]*", "state=forged", back)
    async with browser_of(person._transport.app) as victim:  # type: ignore[attr-defined]
        refused = await victim.get(back)
        assert refused.status_code == 401
        assert "this sign-in was started in another browser" in says(refused)
    refused = await person.get(forged)
    assert "`state` differs" in says(refused)
    assert "was started in another browser" in says(
        await person.get(back)
    )  # the cookie was good for one answer
    for more, said in (
        ("error=access_denied&error_description=You+may+not", "You may not"),
        ("iss=https%3A%2F%2Fevil.example&code=x", "another provider"),
        ("code=made-up", "did not accept its own code"),
        ("", "no code"),
    ):
        asked = re.findall(r"state=([^&]*)", await sent(person))[0]
        refused = await person.get(f"{BACK}?state={asked}&{more}")
        assert refused.status_code == 401
        assert said in says(refused)
    evil = "<script>alert(1)</script>"
    asked = re.findall(r"state=([^&]*)", await sent(person))[0]
    shown = await person.get(BACK, params={"state": asked, "error": "x", "error_description": evil})
    assert evil not in shown.text
    assert evil in says(shown)
    person.cookies.set("penstock_sign_in", "bm90IGpzb24", domain="penstock")
    assert "was started in another browser" in says(await person.get(back))
    gone = await person.get("/sign-in/provider", params={"then": "https://evil.example"})
    entered = await person.get(provider.go(gone.headers["location"]))
    assert entered.headers["location"] == "/"


async def test_a_key_that_was_rotated_is_asked_for_once(
    provider: Provider, person: httpx.AsyncClient
) -> None:
    assert (await sign_in(person, provider)).status_code == 303
    assert (await sign_in(person, provider)).status_code == 303
    assert provider.keys_asked == 1
    provider.key = key()
    assert (await sign_in(person, provider)).status_code == 303
    assert provider.keys_asked == 2


async def test_a_provider_that_is_down_says_so_and_is_asked_again(
    api: Api, provider: Provider, person: httpx.AsyncClient
) -> None:
    provider.down = True
    refused = await person.get("/sign-in/provider")
    assert refused.status_code == 503
    assert "a password or a token still lets you in" in says(refused)
    provider.down = False
    there = await sent(person)
    provider.down = True
    refused = await person.get(provider.go(there))
    assert refused.status_code == 503
    provider.down = False
    assert (await sign_in(person, provider)).status_code == 303
    async with browser_of(app_of(api, provider, oidc_client_secret=SecretStr("another"))) as other:
        refused = await sign_in(other, provider)
        assert refused.status_code == 503
        assert "PENSTOCK_OIDC_CLIENT_SECRET" in says(refused)
        assert "another" not in says(refused)
    nowhere = app_of(api, provider, oidc_issuer=f"{provider.issuer}/")
    async with browser_of(nowhere) as lost:
        assert "also at its last slash" in says(await lost.get("/sign-in/provider"))


async def test_too_many_vain_sign_ins_have_to_wait(
    api: Api, provider: Provider, person: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "MOST_OF_ADDRESS", 2)
    provider.person["groups"] = []
    codes = [(await sign_in(person, provider)).status_code for _ in range(3)]
    assert codes == [403, 403, 429]
    provider.person["groups"] = ["ops"]
    await api.house.rows("delete from login_failure")
    assert [(await sign_in(person, provider)).status_code for _ in range(4)] == [303] * 4


async def test_without_a_provider_no_browser_is_redirected(api: Api) -> None:
    async with browser_of(api.app) as person:
        assert "/sign-in/provider" not in (await person.get("/sign-in")).text
        for path in ("/sign-in/provider", BACK):
            refused = await person.get(path)
            assert refused.status_code == 404
            assert "PENSTOCK_OIDC_ISSUER" in says(refused)


def test_settings_that_would_not_do_are_refused(api: Api, provider: Provider) -> None:
    for wrong, said in (
        ({"oidc_issuer": "http://login.example.org"}, "https"),
        ({"oidc_client_id": None}, "oidc_client_id"),
        ({"api_address": None}, "api_address"),
    ):
        with pytest.raises(ValidationError, match=said):
            Settings(**settings(provider, **wrong))
    for roles, said in (({"a": "root"}, "root"), ({"a": "viewer:A B"}, "tenant")):
        with pytest.raises(ConfigurationError, match=said):
            app_of(api, provider, oidc_roles=roles)
