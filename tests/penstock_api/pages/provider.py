"""A small OpenID Connect provider with keys of its own, on a port of this machine. A test can let it send false claims."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from pydantic import SecretStr

from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.penstock_api.conftest import Api

CLIENT, SECRET = "penstock-pages", "a secret/of: the client"
ADA = {
    "sub": "248289",
    "email": "ada@example.org",
    "email_verified": True,
    "groups": ["ops", "staff"],
    "realm": {"roles": ["acme"]},
}
Says = dict[str, Any]


def key() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig", "alg": "RS256"})


@dataclass(slots=True)
class Provider:
    """The provider. `person` is the user that signs in. `spoil` changes the claims of a token, `sign` makes it of claims;
    `down` answers nothing."""

    issuer: str = ""
    person: Says = field(default_factory=lambda: dict(ADA))
    key: RSAKey = field(default_factory=key)
    shown: list[RSAKey] = field(default_factory=list)
    spoil: Callable[[Says], Any] = lambda _: None
    sign: Callable[[Says], str] | None = None
    down: bool = False
    end_session: str | None = None
    """The address to sign out at, if it has one."""
    signed_out: list[Says] = field(default_factory=list)
    codes: dict[str, Says] = field(default_factory=dict)
    keys_asked: int = 0

    def go(self, address: str) -> str:
        """Sign in as a person that was sent to this address. Returns the address that the person is sent back to."""
        parts = urlsplit(address)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert parts.path == "/authorize"
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        back = urlencode({"code": code, "state": asked["state"], "iss": self.issuer})
        return f"{asked['redirect_uri']}?{back}"

    def token(self, asked: Says) -> str:
        now = int(time.time())
        claims = {
            **self.person,
            "iss": self.issuer,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
        }
        self.spoil(claims)
        if self.sign is not None:
            return self.sign(claims)
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key)

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.middleware("http")
        async def _answers(request: Request, call: Any) -> Response:
            return Response(status_code=503) if self.down else await call(request)

        @app.get("/.well-known/openid-configuration")
        async def _described() -> Says:
            return {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
                **({} if self.end_session is None else {"end_session_endpoint": self.end_session}),
            }

        @app.get("/sign-out")
        async def _signed_out(request: Request) -> Response:
            self.signed_out.append(dict(request.query_params))
            return RedirectResponse(request.query_params["post_logout_redirect_uri"], 303)

        @app.get("/keys")
        async def _keys() -> Any:
            self.keys_asked += 1
            keys: list[Any] = self.shown or [self.key]
            return KeySet(keys).as_dict(private=False)

        @app.post("/token")
        async def _token(request: Request) -> Response:
            form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
            scheme, _, told = request.headers["authorization"].partition(" ")
            right = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
            encoded = base64.b64encode(f"{CLIENT}:{'a+secret%2Fof%3A+the+client'}".encode()).decode()
            if scheme != "Basic" or told not in (right, encoded):
                return JSONResponse({"error": "invalid_client"}, 401)
            asked = self.codes.pop(form.get("code", ""), None)
            proof = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            challenge = base64.urlsafe_b64encode(proof).rstrip(b"=").decode()
            if asked is None or (asked["code_challenge"], asked["redirect_uri"]) != (
                challenge,
                form["redirect_uri"],
            ):
                return JSONResponse({"error": "invalid_grant"}, 400)
            return JSONResponse({"access_token": "a", "token_type": "Bearer", "id_token": self.token(asked)})

        return app


HTML = {"accept": "text/html", "sec-fetch-site": "cross-site"}
NAME = "ada@example.org"


def settings(provider: Provider, **more: Any) -> dict[str, Any]:
    return {
        "api_address": "http://penstock",
        "oidc_issuer": provider.issuer,
        "oidc_client_id": CLIENT,
        "oidc_client_secret": SecretStr(SECRET),
        "oidc_roles": {"ops": "operator:acme, viewer", "acme": "developer:acme"},
        **more,
    }


def app_of(api: Api, provider: Provider, **more: Any) -> FastAPI:
    backend = Backend.of(api.house.client)
    backend.settings = api.house.settings(**settings(provider, **more))
    return make_app(backend)


def browser_of(app: FastAPI) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://penstock", headers=HTML)


async def sent(browser: httpx.AsyncClient, then: str = "/executions") -> str:
    gone = await browser.get("/sign-in/provider", params={"then": then})
    assert gone.status_code == 303, gone.text
    return gone.headers["location"]


async def sign_in(browser: httpx.AsyncClient, provider: Provider) -> httpx.Response:
    return await browser.get(provider.go(await sent(browser)))


def says(page: httpx.Response) -> str:
    [found] = re.findall(r'role="alert">([^<]*)<', page.text)
    return unescape(found)


async def is_nobody(browser: httpx.AsyncClient) -> bool:
    return (await browser.get("/api/v1/session")).status_code == 401
