"""HEAD for every route that has GET: the same answer without its body (RFC 9110, 9.3.2)."""

from __future__ import annotations

import asyncio

from penstock_api.auth.same_origin import Message, Receive, Scope, Send


def as_get(scope: Scope, receive: Receive, send: Send) -> tuple[Scope, Receive, Send]:
    """Return a GET request in place of a HEAD request. The request ends after the head of the answer, since a stream
    would not end by itself."""
    has_head = asyncio.Event()

    async def received() -> Message:
        await has_head.wait()
        return {"type": "http.disconnect"}

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            has_head.set()

    return {**scope, "method": "GET"}, received, sent
