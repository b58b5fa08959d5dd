"""The common parts of pages: a route with its guard, the frame around a page, and errors as pages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, StreamingResponse
from fastapi.routing import request_response
from fastapi.security import SecurityScopes

from penstock.errors import NotAllowed, NotAuthenticated, NotFound, PenstockError
from penstock.language.terms.visible_text import visible_order
from penstock.operate.access import START, Caller
from penstock.run.cut_texts import cut_end
from penstock.service.problems import STATUSES
from penstock_api.auth.access import Guard, GuardedRoute
from penstock_api.auth.allowed import allowed_to
from penstock_api.auth.same_origin import Message
from penstock_api.backend import backend_of
from penstock_api.live import shared_renderings
from penstock_api.live.open_pages import Live, Page
from penstock_api.pages.templating import TEMPLATES
from penstock_api.requests.problems import fault_sentence, faults_of
from penstock_api.routes.router import operation_id

LOOK = Guard(everywhere=False)
"""The guard that finds the caller of a request without a route."""
STREAM = "text/event-stream"
"""The media type that a browser accepts to keep a page open."""


@dataclass(frozen=True, slots=True)
class Place:
    """A page in the menu. The entry is hidden from callers that may not see the page. A `group` is a part of the menu
    with a heading."""

    path: str
    name: str
    key: str
    group: str = ""


ADMINISTRATION = "Administration"
MENU = (
    Place("/", "Overview", "o"),
    Place("/executions", "Executions", "e"),
    Place("/actions", "Actions", "a"),
    Place("/events", "Events", "v"),
    Place("/rules", "Rules", "r"),
    Place("/schedules", "Schedules", "s"),
    Place("/limits", "Limits", "l"),
    Place("/holds", "Holds", "k"),
    Place("/inquiries", "Inquiries", "i"),
    Place("/dead-letters", "Dead letters", "d"),
    Place("/workers", "Workers", "w"),
    Place("/users", "Users", "p", ADMINISTRATION),
    Place("/tokens", "Tokens", "t", ADMINISTRATION),
    Place("/secrets", "Secrets", "c", ADMINISTRATION),
    Place("/webhooks", "Webhooks", "h", ADMINISTRATION),
    Place("/subscriptions", "Subscriptions", "b", ADMINISTRATION),
    Place("/audit", "Audit", "u", ADMINISTRATION),
)
"""The menu. `key` is the key that opens the page after `g`."""


class PageRoute(GuardedRoute):
    """A route of a page. Errors are pages too, for clients that accept pages. A caller that is not signed in is sent
    to the sign-in page."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            if request.headers.get("accept") == STREAM and request.method == "GET":
                return await self._open(request, shown)
            try:
                if request.method == "GET" and shared_renderings.HEADER in request.headers:
                    return await self._shared(request, handle)
                return await handle(request)
            except (PenstockError, RequestValidationError) as error:
                if "text/html" not in request.headers.get("accept", ""):
                    raise
                return refused(request, error)

        return shown

    async def _shared(
        self, request: Request, handle: Callable[[Request], Coroutine[Any, Any, Response]]
    ) -> Response:
        """Return the page, in a rendering that callers with the same rights share."""
        at = await self._look_of(request)
        return await backend_of(request).looks.look(at, lambda: handle(request))

    async def _open(
        self, request: Request, endpoint: Callable[[Request], Coroutine[Any, Any, Response]]
    ) -> Response:
        """Return the stream of the page: its current state, and each changed one."""
        at = await self._look_of(request)

        async def guard() -> None:
            if await self._look_of(request) != at:
                raise NotAllowed(
                    "your permissions have changed, so the request was refused", hint="Load the page again."
                )

        answer = await backend_of(request).open_pages.open(at, guard, lambda: _alone(endpoint, request))
        if isinstance(answer, Response):
            return answer
        return StreamingResponse(answer, media_type=STREAM, headers={"x-accel-buffering": "no"})

    async def _look_of(self, request: Request) -> tuple[str, str, Caller]:
        """Return the key that is equal for all callers that see the same page. Raises NotAuthenticated without a valid
        token or session, and NotAllowed if the caller may not see the page."""
        await self.guard(request, SecurityScopes([self.scope]))
        return request.url.path, request.url.query, request.state.caller


async def _alone(endpoint: Callable[[Request], Coroutine[Any, Any, Response]], request: Request) -> Response:
    """Return the page, rendered in a separate request. That request has ended, and has returned its sessions, when
    this returns."""
    response = Response(status_code=500)

    async def kept(own_request: Request) -> Response:
        nonlocal response
        response = await endpoint(own_request)
        return response

    async def nothing() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def unsent(_: Message) -> None:
        pass

    headers = [header for header in request.scope["headers"] if header[0] != b"accept"]
    state = dict(request.scope.get("state", {}))
    scope = {**request.scope, "headers": [*headers, (b"accept", b"text/html")], "state": state}
    await request_response(kept)(scope, nothing, unsent)
    return response


def PageRouter(subject: str) -> APIRouter:
    """Return a router for pages, which the OpenAPI description omits."""
    return APIRouter(
        tags=[subject],
        route_class=PageRoute,
        generate_unique_id_function=operation_id,
        include_in_schema=False,
    )


def page(request: Request, template: str, /, status: int = 200, **context: Any) -> Page:
    """Return a page in its frame. If `context` has `watched`, a filter of moves, the page is rendered again when an
    execution that fits it moves. `every` is the maximum number of seconds between two renderings."""
    caller: Caller | None = getattr(request.state, "caller", None)
    allowed, backend = allowed_to(request), backend_of(request)
    menu = [place for place in MENU if caller is not None and allowed(f"GET {place.path}")]
    whole = {
        "caller": caller,
        "allowed": allowed,
        "parts": TEMPLATES.get_template("parts.html").make_module({"allowed": allowed}),
        "provider": provider_of(request),
        "unlocked": backend.settings.api_access == "open",
        "behind": backend.behind,
        "menu": menu,
        "here": request.url.path,
    }
    watched, every = context.pop("watched", None), context.pop("every", None)
    live = Live(watched, every) if watched or every else None
    # No template contains a character that changes the order of text, so any that is escaped came from a user.
    html = visible_order(TEMPLATES.get_template(template).render(whole | context, live=live))
    return Page(html, status, live)


def provider_of(request: Request) -> str | None:
    """Return the host of the identity provider with which people can sign in, or None."""
    return urlsplit(backend_of(request).settings.oidc_issuer or "").hostname


REFUSED = "This request failed"
TITLES = {403: "Not allowed", 404: "Not found"}
"""The titles of the pages of refusals, by status."""


def refused(request: Request, error: PenstockError | RequestValidationError) -> Response:
    """Return the page of a refusal, with its reason and what to do next."""
    if isinstance(error, NotAuthenticated):
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/sign-in?then={quote(target, safe='')}", 303)
    if isinstance(error, RequestValidationError):
        return page(
            request,
            "error.html",
            422,
            title=REFUSED,
            says=fault_sentence(faults_of(error, 5)),
            hint="Check this part of the URL, or open the list from the menu.",
        )
    status = next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), None)
    if status is None:
        raise error
    # The guard refused the caller before the route had it. The menu still shows where the caller may go.
    if getattr(request.state, "caller", None) is None:
        request.state.caller = getattr(request.state, "authenticated", None)
    title = TITLES.get(status, REFUSED)
    return page(request, "error.html", status, title=title, says=error.message, hint=error.hint)


async def unknown_address(request: Request) -> Response:
    """Return the page of an address that has no page, with the menu of the caller, if it is signed in."""
    with suppress(NotAuthenticated):
        request.state.authenticated = await LOOK.find_caller(request)
    return refused(
        request,
        NotFound(
            f"there is no page at {cut_end(request.url.path, 200)}",
            hint="Check the address, or choose a page from the menu.",
        ),
    )


def first_tenant(caller: Caller) -> str:
    """Return the initial tenant of a form: `public`, or the first one that the caller may use."""
    tenants = caller.within(START).tenants
    return "public" if not tenants or "public" in tenants else min(tenants)


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form without files. Of several values of a name, the last one counts."""
    body = (await request.body()).decode("utf-8", "replace").replace("\0", "")
    return dict(parse_qsl(body, keep_blank_values=False))
