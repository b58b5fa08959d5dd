"""The application: its routes, its errors as problem documents, and its OpenAPI description."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

from fastapi import FastAPI, Request, Response
from fastapi.routing import iter_route_contexts

from penstock import tracing
from penstock.service.problems import BODY_SLACK, too_large
from penstock_api import fast_path, head_requests, pages
from penstock_api.auth.allowed import table
from penstock_api.auth.same_origin import Receive, SameOrigin, Scope, Send, public_netloc, with_headers
from penstock_api.backend import Backend
from penstock_api.pages.page import unknown_address
from penstock_api.requests import public_path
from penstock_api.requests.description import describe
from penstock_api.requests.problems import ANSWERS, answer, handle_errors, refused
from penstock_api.routes import ROUTERS, log_in, worker_protocol
from penstock_api.traced_requests import TracedRequests
from penstock_api.webhooks import callbacks, webhook_calls

PREFIX = "/api/v1"
LOG_IN_PATH = f"{PREFIX}/session"
SIGN_IN_PATH = "/sign-in"
LOG_IN_PATHS = (LOG_IN_PATH, SIGN_IN_PATH)
DESCRIPTION = """\
The API can start, show and control all work, and administer access and operation. Code is applied with \
`penstock apply`. Errors are problem details (RFC 9457) with the fix in `hint`.
For the next page of a list, pass the value of `next` of the last answer in the parameter `before`.
Instants are ISO 8601 with an offset. Durations are seconds. Where a field says so, a request may have a text such as "5m"."""


class Application(FastAPI):
    """An application with a fast path in front of all middleware. It serves submissions and calls of workers, and refuses
    sign-ins if their queue is full.

    HEAD is answered as GET. A body with a declared length over the bound is refused unread.
    """

    fast: Mapping[str, fast_path.FastRoute] = {}
    public_path = ""
    has_webhooks = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope, send = (
                public_path.enter(self.public_path, scope),
                public_path.leave(self.public_path, send),
            )
            if self.has_webhooks:
                send = self.state.backend.refused_webhook_calls.watched(scope, send)
            if declared_length(scope) > (self.max_body_size or 0):
                return await answer(too_large())(scope, receive, with_headers(send))
            if scope["method"] == "HEAD":
                scope, receive, send = head_requests.as_get(scope, receive, send)
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in LOG_IN_PATHS:
            with_page = scope["path"] == SIGN_IN_PATH
            if await log_in.refused_unread(self.state.backend, scope, receive, send, with_page=with_page):
                return
        elif scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in self.fast:
            route = self.fast[scope["path"]]
            unread = await fast_path.answer(route, self.state.backend, scope, receive, send)
            if unread is None:
                return
            receive = unread
        await super().__call__(scope, receive, send)


def declared_length(scope: Scope) -> int:
    """Return the declared length of a request's body in bytes, or 0 if it declares none."""
    return next(
        (int(value) for name, value in scope["headers"] if name == b"content-length" and value.isdigit()), 0
    )


def make_app(backend: Backend, *, only_work: bool = False) -> FastAPI:
    """Return the application of one process. `only_work`: it has the routes of the worker protocol alone."""
    routers = (worker_protocol.router,) if only_work else ROUTERS
    largest = backend.settings.payload_cap + BODY_SLACK
    app = Application(
        title="Penstock",
        version=version("penstock"),
        description=DESCRIPTION,
        openapi_url=None,
        max_body_size=largest,
        telemetry={"tracing": False, "metrics": False, "logs": False},
        redirect_slashes=False,
    )
    app.state.backend = backend
    app.fast = fast_path.fast_routes(routers, PREFIX, largest)
    app.state.provider = None if only_work else _provider(backend)
    handle_errors(app)
    for router in routers:
        app.include_router(router, prefix=PREFIX, responses=ANSWERS)
    if not only_work:
        app.include_router(log_in.router, prefix=PREFIX)
        app.include_router(webhook_calls.router)
        app.has_webhooks = True
        app.include_router(callbacks.router)
        for page in pages.ROUTERS:
            app.include_router(page)
        app.add_exception_handler(404, _unknown_address)
    describe(app)
    app.state.routes = table(app)
    app.public_path = public_path.path_of(
        backend.settings, [route.path for route in iter_route_contexts(app.routes) if route.path]
    )
    if tracing.is_on():
        app.add_middleware(TracedRequests)
    app.add_middleware(
        SameOrigin,
        loopback=backend.settings.api_access == "open",
        netloc=public_netloc(backend.settings.api_address),
    )
    return app


def _provider(backend: Backend) -> object:
    if backend.settings.oidc_issuer is None:
        return None
    # importing Authlib takes most of a second
    from penstock_api.auth.identity_provider import IdentityProvider

    return IdentityProvider.of(backend.settings)


async def _unknown_address(request: Request, error: Exception) -> Response:
    """Return a page to a browser, and a problem document to a program."""
    is_page = request.method == "GET" and not request.url.path.startswith("/api/")
    if is_page and "text/html" in request.headers.get("accept", ""):
        return await unknown_address(request)
    return await refused(request, error)
