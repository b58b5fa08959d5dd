"""What every page has: a route that says who may look, the frame around it, and errors that are pages, too."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.security import SecurityScopes

from penstock.errors import NotAuthenticated, PenstockError
from penstock.language.options import dotted
from penstock.operate.access import OPERATE, Caller
from penstock_api import shared_looks
from penstock_api.access import GuardedRoute
from penstock_api.allowed import allowed_to
from penstock_api.backend import backend_of
from penstock_api.pages.templating import TEMPLATES
from penstock_api.problems import STATUSES
from penstock_api.routes.router import operation_id


@dataclass(frozen=True, slots=True)
class Place:
    """A page of the menu. Who may not look at it is not led there."""

    path: str
    name: str
    key: str


MENU = (
    Place("/", "Overview", "o"),
    Place("/executions", "Executions", "e"),
    Place("/actions", "Actions", "a"),
    Place("/events", "Events", "v"),
    Place("/rules", "Rules", "r"),
    Place("/schedules", "Schedules", "s"),
    Place("/limits", "Limits", "l"),
    Place("/inquiries", "Inquiries", "i"),
    Place("/dead-letters", "Dead letters", "d"),
    Place("/workers", "Workers", "w"),
)
"""`key`: what goes there after `g`."""


class PageRoute(GuardedRoute):
    """What goes wrong is a page, too, for whoever asks for pages; who is not signed in is asked to."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                if request.method == "GET" and shared_looks.HEADER in request.headers:
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
        """For somebody who may see it, what others see who are allowed the same."""
        await self.guard(request, SecurityScopes([self.scope]))
        caller: Caller = request.state.caller
        at = (request.url.path, request.url.query, caller)
        return await backend_of(request).looks.look(at, lambda: handle(request))


def PageRouter(subject: str) -> APIRouter:
    """A router of pages, which programs are told nothing of."""
    return APIRouter(
        tags=[subject],
        route_class=PageRoute,
        generate_unique_id_function=operation_id,
        include_in_schema=False,
    )


def page(request: Request, template: str, /, status: int = 200, **given: Any) -> Response:
    """A page in its frame. `stream` among what is given: what to watch (a query of `/api/v1/stream`); `every`: seconds after
    which to look again, however quiet it is."""
    caller: Caller | None = getattr(request.state, "caller", None)
    allowed, here = allowed_to(request), backend_of(request)
    menu = [place for place in MENU if caller is not None and allowed(f"GET {place.path}")]
    whole = {
        "caller": caller,
        "allowed": allowed,
        "parts": TEMPLATES.get_template("parts.html").make_module({"allowed": allowed}),
        "provider": provider_of(request),
        "unlocked": here.settings.api_access == "open",
        "behind": here.behind,
        "menu": menu,
        "here": request.url.path,
        "stream": None,
        "every": None,
    }
    return HTMLResponse(TEMPLATES.get_template(template).render(whole | given), status)


def provider_of(request: Request) -> str | None:
    """The host of the provider that people can sign in with."""
    return urlsplit(backend_of(request).settings.oidc_issuer or "").hostname


def refused(request: Request, error: PenstockError | RequestValidationError) -> Response:
    """Why not, and what to do next."""
    if isinstance(error, NotAuthenticated):
        there = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/sign-in?then={quote(there, safe='')}", 303)
    if isinstance(error, RequestValidationError):
        said = "; ".join(f"{dotted(one['loc'])}: {one['msg']}" for one in error.errors()[:5])
        return page(request, "error.html", 422, says=said, hint="Mend the address, or begin at the menu.")
    status = next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), None)
    if status is None:
        raise error
    return page(request, "error.html", status, says=error.message, hint=error.hint)


def first_tenant(caller: Caller) -> str:
    """For which tenant a form begins that starts something: `public`, or the first for which the caller may."""
    tenants = caller.within(OPERATE).tenants
    return "public" if not tenants or "public" in tenants else min(tenants)


async def form_of(request: Request) -> dict[str, str]:
    """What a form without files sent, the last of each name."""
    body = (await request.body()).decode("utf-8", "replace").replace("\0", "")
    return dict(parse_qsl(body, keep_blank_values=False))
