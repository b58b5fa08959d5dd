"""The application: routes, errors as problems, and its own description."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import FastAPI

from penstock import tracing
from penstock_api import log_in, pages, webhook_calls
from penstock_api.backend import Backend
from penstock_api.description import describe
from penstock_api.problems import ANSWERS, handle_errors
from penstock_api.routes import ROUTERS
from penstock_api.same_origin import SameOrigin
from penstock_api.traced_requests import TracedRequests

PREFIX = "/api/v1"
DESCRIPTION = """\
Everything that the command line can do. Errors are problem details (RFC 9457) with the fix in `hint`.
Lists go on with `before=` the `next` of the page before. Instants have an offset, durations are seconds."""
SLACK = 64 * 1024
"""Bytes of a request beside its payload."""


def make_app(backend: Backend) -> FastAPI:
    """The application of one process."""
    app = FastAPI(
        title="Penstock",
        version=version("penstock"),
        description=DESCRIPTION,
        openapi_url=None,
        max_body_size=backend.settings.payload_cap + SLACK,
        telemetry={"tracing": False, "metrics": False, "logs": False},
        redirect_slashes=False,
    )
    app.state.backend = backend
    handle_errors(app)
    for router in ROUTERS:
        app.include_router(router, prefix=PREFIX, responses=ANSWERS)
    app.include_router(log_in.router, prefix=PREFIX)
    app.include_router(webhook_calls.router)
    for router in pages.ROUTERS:
        app.include_router(router)
    describe(app)
    if tracing.is_on():
        app.add_middleware(TracedRequests)
    app.add_middleware(SameOrigin, loopback=backend.settings.api_access == "open")
    return app
