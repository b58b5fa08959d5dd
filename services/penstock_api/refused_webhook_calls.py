"""The counts of refused calls of webhooks and callbacks. A flood of calls writes a bounded number of rows, whatever names it
calls, and at most one statement a second."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import structlog
from fastapi import Request
from starlette.types import Message, Scope, Send

from penstock.operate import outside
from penstock.operate.webhooks import NAME
from penstock.store.access import webhook_refusals
from penstock_api.session_pool import SessionPool

log = structlog.get_logger()

PATH = "/hooks/"
INTERVAL = 1.0
"""The seconds between a refusal and the statement that counts it and all later ones."""
MOST_KEYS = 100
"""The maximum number of names and reasons that are counted apart in one statement. All others are counted without a name."""
REASONS: Mapping[int, str] = {
    400: "unreadable call",
    401: "wrong signature",
    403: "wrong host or origin",
    404: "unknown webhook",
    405: "wrong method",
    409: "key of another call",
    413: "too large",
    422: "invalid call",
    503: "service unavailable",
}
"""The reason of a refusal by its HTTP status, unless the route names another one. A reason never has text of the call."""
CALLBACK_REASONS: Mapping[int, str] = {
    400: "callback: unreadable call",
    403: "callback: wrong host or origin",
    404: "callback: unknown address",
    405: "callback: wrong method",
    409: "callback: the attempt does not wait",
    413: "callback: too large",
    422: "callback: invalid body",
    503: "callback: service unavailable",
}
"""The reason of the refusal of a callback by its HTTP status. The address is a permission, so no count has it."""
FAILED = "service failed"
CALLBACK_FAILED = "callback: service failed"
SCOPE_KEY = "penstock.webhook_refusal"


def _after_interval(write: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(INTERVAL, write)


class RefusedWebhookCalls:
    """The refused calls of webhooks and callbacks of one process that are not yet counted in the database."""

    def __init__(
        self, pool: SessionPool, after_interval: Callable[[Callable[[], None]], None] = _after_interval
    ) -> None:
        self._pool = pool
        self._after_interval = after_interval
        self._calls: Counter[tuple[str, str]] = Counter()
        self._writing: asyncio.Task[None] | None = None

    def watched(self, scope: Scope, send: Send) -> Send:
        """Return a `send` that notes the call if its answer refuses it. The call of another path is not watched."""
        if scope["path"].startswith(outside.PATH):
            name, reasons, failed = "", CALLBACK_REASONS, CALLBACK_FAILED
        elif scope["path"].startswith(PATH):
            name, reasons, failed = scope["path"].removeprefix(PATH), REASONS, FAILED
        else:
            return send
        reason: list[str] = []
        scope[SCOPE_KEY] = reason

        async def watching(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400:
                self.note(name, reason[0] if reason else reasons.get(message["status"], failed))
            await send(message)

        return watching

    def note(self, name: str, reason: str) -> None:
        """Count a refused call of this name, which need not be one of a webhook."""
        key = (name if NAME.fullmatch(name) else "", reason)
        if key not in self._calls and len(self._calls) >= MOST_KEYS:
            key = ("", reason)
        if not self._calls:
            self._after_interval(self._begin)
        self._calls[key] += 1

    def _begin(self) -> None:
        if self._writing is not None and not self._writing.done():  # the database is slow
            self._after_interval(self._begin)
        elif self._calls:
            self._writing = asyncio.create_task(self._write(), name="refused webhook calls")

    async def _write(self) -> None:
        """Write the counts. If the database fails, the log has their sum."""
        calls, self._calls = self._calls, Counter()
        try:
            async with self._pool.session() as session:
                await webhook_refusals.count(session, calls)
        except Exception as error:
            log.warning("api.webhook_refusals_not_counted", count=calls.total(), reason=str(error))

    async def close(self) -> None:
        """Write the counts that are not written yet."""
        if self._writing is not None:
            await self._writing
        if self._calls:
            await self._write()


@contextmanager
def refused_as(request: Request, reasons: Mapping[type[Exception], str]) -> Iterator[None]:
    """Name the reason of a refusal by the class of its error."""
    try:
        yield
    except tuple(reasons) as error:
        request.scope[SCOPE_KEY].append(next(reasons[kind] for kind in reasons if isinstance(error, kind)))
        raise
