"""The cookies of a person's session, and of a browser that signed in with a token. No script can read them. Browsers
do not send them with changes from other sites, and send them over TLS only, except on this machine."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from fastapi import Request, Response

from penstock.errors import NotAllowed
from penstock.language.terms.setting_values import LOOPBACK
from penstock.settings import Settings
from penstock.store.session.noted_clock import noted
from penstock_api.auth.same_origin import SAFE, public_netloc, says_same_origin
from penstock_api.backend import backend_of
from penstock_api.requests.public_path import base

SESSION, TOKEN, ASKED = "penstock_session", "penstock_token", "penstock_sign_in"
SECURE, SECURE_BELOW = "__Host-", "__Secure-"
"""The prefixes of cookies that browsers accept only over TLS (RFC 6265bis). The first also requires the path `/`.
Below a path of a shared host a cookie has that path, and the second prefix."""


def secret_of(request: Request, name: str = SESSION) -> str | None:
    """Return the session's secret or the token from the cookie, or None without a cookie. Raises NotAllowed for a
    change that the browser does not attribute to a page of this host."""
    netloc = public_netloc(backend_of(request).settings.api_address)
    secret = request.cookies.get(_name(name, backend_of(request).settings))
    if secret and request.method not in SAFE and not says_same_origin(request.headers, netloc):
        raise NotAllowed(
            "the request was refused, since it does not come from a page of this host",
            hint="Programs use a token: penstock tokens create NAME.",
        )
    return secret or None


def put(request: Request, response: Response, secret: str, until: datetime, name: str = SESSION) -> None:
    settings = backend_of(request).settings
    seconds = int((until - noted()).total_seconds())
    response.set_cookie(
        _name(name, settings), secret, max_age=max(1, seconds), path=f"{base()}/", secure=_secure(settings), httponly=True,
        samesite=_samesite(name),
    )  # fmt: skip


def take_back(request: Request, response: Response, name: str = SESSION) -> None:
    settings = backend_of(request).settings
    response.delete_cookie(
        _name(name, settings),
        path=f"{base()}/",
        secure=_secure(settings),
        httponly=True,
        samesite=_samesite(name),
    )


def _samesite(name: str) -> Literal["lax", "strict"]:
    return "strict" if name == TOKEN else "lax"


def _name(name: str, settings: Settings) -> str:
    if not _secure(settings):
        return name
    return f"{SECURE_BELOW if base() else SECURE}{name}"


def _secure(settings: Settings) -> bool:
    if settings.api_address is not None:
        return settings.api_address.startswith("https://")
    return settings.api_host not in LOOPBACK
