"""The requests that a caller may make, by the app's own table of routes. A page shows no button that leads to a
refused request."""

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
"""Methods, the paths that match, and who lets in with which scope; None: a route that is open to anybody."""


def table(app: FastAPI) -> list[Guarded]:
    """The routes of this app, in the order in which they are tried."""
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
    """Return a function that tells whether the caller of this request may make another: `allowed("POST
    /api/v1/executions", tenant)`. With no tenant it is asked for any that is theirs. Raises LookupError for what is
    no route: a button would lead nowhere."""
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
