"""The traces of requests. The work of a request continues the trace in its headers (W3C Trace Context)."""

from __future__ import annotations

from penstock import tracing
from penstock_api.auth.same_origin import App, Receive, Scope, Send


class TracedRequests:
    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", ())
        }
        with tracing.received(headers):
            await self._app(scope, receive, send)
