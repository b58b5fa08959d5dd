"""The protection against pages of other origins. Such pages can neither make a browser change anything, nor read
anything through a host name of their own that resolves to this host. Also the security headers of every answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from penstock.language.terms.setting_values import LOOPBACK, host_name
from penstock.run.cut_texts import cut_end
from penstock.service.problems import Problem
from penstock_api.requests.problems import answer

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SAFE = ("GET", "HEAD", "OPTIONS")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (
        b"referrer-policy",
        b"same-origin",
    ),  # with `no-referrer`, browsers would hide the origin even of this host's own forms
    (b"cache-control", b"no-store"),
)


def public_netloc(address: str | None) -> str | None:
    """Return host and port of PENSTOCK_API_ADDRESS as they are in an origin, without the default port of its scheme."""
    if address is None:
        return None
    parts = urlsplit(address)
    usual = {"http": ":80", "https": ":443"}[parts.scheme]
    return parts.netloc.lower().removesuffix(usual)


def _is_own(origin: str, host: str, netloc: str | None) -> bool:
    """Return whether an origin is this host, by its name in the request or in the settings. A proxy may rewrite the
    former."""
    try:
        origin_netloc = urlsplit(origin).netloc
    except ValueError:
        return False
    return origin_netloc == host or (netloc is not None and origin_netloc == netloc)


def says_same_origin(headers: Mapping[str, str], netloc: str | None = None) -> bool:
    """Return whether the browser's headers say that a page of this host sent the request. Every recent browser says so
    for a change.

    `headers` are by lower-case name. `netloc` is that of `public_netloc`.
    """
    if (site := headers.get("sec-fetch-site")) is not None:
        return site == "same-origin"
    origin = headers.get("origin")
    return origin is not None and _is_own(origin, headers.get("host", ""), netloc)


def refused(
    method: str, headers: Mapping[str, str], *, loopback: bool, netloc: str | None = None
) -> str | None:
    """Return the reason to refuse a request, or None to answer it. `headers` are by lower-case name.

    With `loopback` no caller needs a token, so only names of this machine are accepted. Any other name may belong to a
    foreign page and resolve to this host (DNS rebinding).
    """
    host = headers.get("host", "")
    if loopback and host_name(host) not in LOOPBACK:
        return f"this API only accepts the host names of this machine, and not {cut_end(host, 100)!r}"
    if method in SAFE:
        return None
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return "this request comes from a page of another origin, which is not allowed"
    origin = headers.get("origin")
    if origin is not None and not _is_own(origin, host, netloc):
        return "this request comes from a page of another origin, which is not allowed"
    return None


def with_headers(send: Send) -> Send:
    """Return a `send` that adds the security headers to every answer."""

    async def answered(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = message.get("headers", ())
            names = {name.lower() for name, _ in headers}
            message["headers"] = [*headers, *(header for header in HEADERS if header[0] not in names)]
        await send(message)

    return answered


class SameOrigin:
    """The middleware in front of all routes. For `loopback` see `refused`."""

    def __init__(self, app: App, *, loopback: bool, netloc: str | None) -> None:
        self._app = app
        self._loopback = loopback
        self._netloc = netloc

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if reason := refused(scope["method"], headers, loopback=self._loopback, netloc=self._netloc):
            problem = Problem(
                title="Forbidden", status=403, detail=reason, hint="Send the request from a page of Penstock."
            )
            return await answer(problem)(scope, receive, with_headers(send))
        await self._app(scope, receive, with_headers(send))
