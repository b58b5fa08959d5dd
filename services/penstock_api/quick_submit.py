"""The fast path of submissions. FastAPI's work for a route (nine layers, routing, dependencies, two validations) takes
most of the cost of a start.

A frequent and valid request is read here with its model, and passed to the same endpoint. Any other request goes
through FastAPI, which explains its fault. So both paths answer alike, and one description fits both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import APIRouter, Response
from pydantic import BaseModel, ValidationError

from penstock import tracing
from penstock.errors import NotAllowed, PenstockError
from penstock_api.auth import same_origin
from penstock_api.auth.access import Guard, GuardedRoute, token_in
from penstock_api.auth.same_origin import Message, Receive, Scope, Send
from penstock_api.backend import Backend
from penstock_api.requests import problems
from penstock_api.requests.caller_address import grouped

Endpoint = TypeVar("Endpoint", bound=Callable[..., Awaitable[BaseModel]])

JSON = "application/json"
LONGEST_KEY = 1000
"""The maximum length of an idempotency key, in characters."""


def quickly(model: type[BaseModel]) -> Callable[[Endpoint], Endpoint]:
    """Mark an endpoint for the fast path. It takes `given` (of this model), `here`, `caller`, `response` and
    `idempotency_key`, and nothing else."""

    def note(endpoint: Endpoint) -> Endpoint:
        endpoint.given = model  # type: ignore[attr-defined]
        return endpoint

    return note


@dataclass(frozen=True, slots=True)
class Submit:
    """A route with the fast path. `largest` is the maximum size in bytes of a body that it reads."""

    endpoint: Callable[..., Awaitable[BaseModel]]
    model: type[BaseModel]
    status: int
    guard: Guard
    scope: str
    largest: int
    operation: str


def submits(routers: Iterable[APIRouter], prefix: str, largest: int) -> dict[str, Submit]:
    """Return the routes with the fast path, by path. All of them are POST."""
    return {
        prefix + route.path: Submit(
            route.endpoint,
            route.endpoint.given,
            route.status_code or 200,
            route.guard,
            route.scope,
            largest,
            route.unique_id,
        )
        for router in routers
        for route in router.routes
        if isinstance(route, GuardedRoute) and hasattr(route.endpoint, "given")
    }


async def answer(
    submit: Submit, backend: Backend, scope: Scope, receive: Receive, send: Send
) -> Receive | None:
    """Answer the request and return None. If FastAPI has to answer it, return a `receive` for the request instead."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    netloc = same_origin.public_netloc(backend.settings.api_address)
    is_open = backend.settings.api_access == "open"
    length, key = headers.get("content-length", ""), headers.get("idempotency-key")
    if (
        headers.get("content-type") != JSON
        or scope.get("query_string")  # it takes no query, and FastAPI's path refuses one
        or not (length.isdecimal() and int(length) <= submit.largest)
        or (key is not None and len(key) > LONGEST_KEY)
        or len(headers) < len(scope["headers"])  # a header occurs twice
        or same_origin.refused("POST", headers, loopback=is_open, netloc=netloc)
    ):
        return receive
    try:
        caller = await submit.guard.caller_with(backend, token_in(headers.get("authorization", "")))
        if caller is None:  # a browser's cookie may identify the caller
            return receive
        caller = submit.guard.admitted(caller, submit.scope)
    except Exception:  # nothing is stored yet, and FastAPI's path fails alike and explains it
        return receive
    body, again = await _read(receive)
    if len(body) != int(length):  # the client has disconnected
        return again
    try:
        document = submit.model.model_validate_json(body)
    except ValidationError:
        return again
    response = Response(media_type=JSON)
    try:
        with tracing.received(headers):
            result = await submit.endpoint(
                given=document, here=backend, caller=caller, response=response, idempotency_key=key
            )
    except Exception as error:  # it may be stored, and FastAPI's path would store it again
        if isinstance(error, NotAllowed):
            address = grouped(scope["client"][0] if scope.get("client") else "")
            await backend.refused_calls.note(
                caller.name, address, submit.operation, scope["path"], error.message
            )
        problem = problems.explained_to_callers(error)
        await problem(scope, receive, same_origin.with_headers(send))
        if not isinstance(error, (PenstockError, *problems.OUTAGES)):
            raise  # as for any other route, the server logs it
        return None
    content = result.model_dump_json().encode()
    await send(
        {"type": "http.response.start", "status": submit.status, "headers": _headers(response, content)}
    )
    await send({"type": "http.response.body", "body": content})
    return None


def _headers(response: Response, content: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-length", b"%d" % len(content)),
        (b"content-type", JSON.encode()),
        (b"location", response.headers["location"].encode("latin-1")),
        *same_origin.HEADERS,
    ]


async def _read(receive: Receive) -> tuple[bytes, Receive]:
    """Return the body, and a `receive` that yields it again."""
    messages: deque[Message] = deque()
    while not messages or messages[-1].get("more_body", False):
        messages.append(await receive())
    body = b"".join(message.get("body", b"") for message in messages)

    async def again() -> Any:
        return messages.popleft() if messages else await receive()

    return body, again
