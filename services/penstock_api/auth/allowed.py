"""The requests that a caller may make, by the application's own table of routes. So a page shows no button that would
lead to a refused request."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.routing import iter_route_contexts
from starlette.routing import compile_path

from penstock.errors import NotAllowed, NotFound
from penstock.operate.access import Caller
from penstock_api.auth.access import Guard

Allowed = Callable[..., bool]
Guarded = tuple[frozenset[str], re.Pattern[str], Guard | None, str]
"""A route: its methods, the pattern of its path, its guard (None: open to any caller), and the required scope."""


def table(app: FastAPI) -> list[Guarded]:
    """Return the routes of this application, in the order in which they are tried."""
    guarded: list[Guarded] = []
    for route in iter_route_contexts(app.routes):
        context: Any = route
        pattern, _, _ = compile_path(context.path)
        guards = [
            (depends.dependency, *depends.scopes)
            for depends in getattr(context.original_route, "dependencies", ())
            if isinstance(depends.dependency, Guard)
        ]
        guard, scope = guards[0] if guards else (None, "")
        guarded.append((frozenset(context.methods), pattern, guard, scope))
    return guarded


def allowed_to(request: Request) -> Allowed:
    """Return a function that says whether the caller of this request may make another: `allowed("POST
    /api/v1/executions", tenant)`.

    Without a tenant it says so for any tenant of the caller. The function raises LookupError for a path that is not a
    route, since such a button would lead nowhere.
    """
    caller: Caller | None = getattr(request.state, "caller", None)
    routes: list[Guarded] = request.app.state.routes

    def allowed(call: str, tenant: str | None = None) -> bool:
        method, address = call.split()[:2]
        for methods, pattern, guard, scope in routes:
            if method in methods and pattern.match(address):
                return guard is None or (caller is not None and _lets_in(guard, caller, scope, tenant))
        raise LookupError(f"there is no route for {method} {address}")

    return allowed


def _lets_in(guard: Guard, caller: Caller, scope: str, tenant: str | None) -> bool:
    try:
        admitted = guard.admitted(caller, scope)
    except (NotAllowed, NotFound):
        return False
    return tenant is None or admitted.sees(tenant)
