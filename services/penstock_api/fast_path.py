"""The fast path of frequent calls: submissions, and the messages of workers. FastAPI's work for a route (nine layers, routing,
dependencies, two validations) takes most of the cost of a start, and of a take.

A frequent and valid request is read here with its model, and passed to the same endpoint. Any other request goes
through FastAPI, which explains its fault. So both paths answer alike, and one description fits both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ValidationError

from penstock import tracing
from penstock.errors import NotAllowed, PenstockError
from penstock.operate.access import Caller
from penstock_api.auth import same_origin
from penstock_api.auth.access import KEY_HEADER, Guard, GuardedRoute, note_refusal, token_in
from penstock_api.auth.same_origin import Message, Receive, Scope, Send
from penstock_api.backend import Backend
from penstock_api.requests import problems
from penstock_api.requests.caller_address import grouped

Endpoint = TypeVar("Endpoint", bound=Callable[..., Awaitable[BaseModel]])

JSON = "application/json"
LONGEST_KEY = 1000
"""The maximum length of an idempotency key, in characters."""


@dataclass(frozen=True, slots=True)
class Call:
    """A valid request. `document` is its body. `headers` are by lower-case name."""

    document: Any
    backend: Backend
    caller: Caller
    headers: Mapping[str, str]
    request: Request
    response: Response


Arguments = Callable[[Call], Awaitable[Mapping[str, Any] | None]]
"""A function that returns the arguments of an endpoint; None if FastAPI has to answer the request."""


class Quick(NamedTuple):
    """The call of an endpoint on the fast path: the model of its body, its arguments, and whether it takes an idempotency key."""

    model: type[BaseModel]
    arguments: Arguments
    takes_key: bool


async def of_submission(call: Call) -> Mapping[str, Any] | None:
    """Return the arguments of a start or an event."""
    key = call.headers.get(KEY_HEADER)
    if key is not None and len(key) > LONGEST_KEY:
        return None
    return {
        "given": call.document,
        "here": call.backend,
        "caller": call.caller,
        "response": call.response,
        "idempotency_key": key,
    }


def quickly(
    model: type[BaseModel], arguments: Arguments = of_submission, *, takes_key: bool = True
) -> Callable[[Endpoint], Endpoint]:
    """Mark an endpoint for the fast path. `model` is that of its body. `takes_key`: it takes an idempotency key."""

    def note(endpoint: Endpoint) -> Endpoint:
        endpoint.quick = Quick(model, arguments, takes_key)  # type: ignore[attr-defined]
        return endpoint

    return note


@dataclass(frozen=True, slots=True)
class FastRoute:
    """A route with the fast path. `largest` is the maximum size in bytes of a body that it reads."""

    endpoint: Callable[..., Awaitable[BaseModel]]
    quick: Quick
    status: int
    guard: Guard
    scope: str
    largest: int
    operation: str


def fast_routes(routers: Iterable[APIRouter], prefix: str, largest: int) -> dict[str, FastRoute]:
    """Return the routes with the fast path, by path. All of them are POST."""
    return {
        prefix + route.path: FastRoute(
            route.endpoint,
            route.endpoint.quick,
            route.status_code or 200,
            route.guard,
            route.scope,
            largest,
            route.unique_id,
        )
        for router in routers
        for route in router.routes
        if isinstance(route, GuardedRoute) and hasattr(route.endpoint, "quick")
    }


async def answer(
    route: FastRoute, backend: Backend, scope: Scope, receive: Receive, send: Send
) -> Receive | None:
    """Answer the request and return None. If FastAPI has to answer it, return a `receive` for the request instead."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    netloc = same_origin.public_netloc(backend.settings.api_address)
    is_open = backend.settings.api_access == "open"
    length = headers.get("content-length", "")
    if (
        headers.get("content-type") != JSON
        # The fast path takes no query parameters, and FastAPI's path refuses unknown ones.
        or scope.get("query_string")
        or not (length.isdecimal() and int(length) <= route.largest)
        or (KEY_HEADER in headers and not route.quick.takes_key)
        or len(headers) < len(scope["headers"])  # a header occurs twice
        or same_origin.refused("POST", headers, loopback=is_open, netloc=netloc)
    ):
        return receive
    try:
        caller = await route.guard.caller_with(backend, token_in(headers.get("authorization", "")))
        if caller is None:  # the cookie of a browser may identify the caller
            return receive
        caller = route.guard.admitted(caller, route.scope)
    except Exception:  # nothing is stored yet, so FastAPI's path fails alike, and explains it
        return receive
    body, again = await _read(receive)
    if len(body) != int(length):  # the client has disconnected
        return again
    try:
        document = route.quick.model.model_validate_json(body)
    except ValidationError:
        return again
    response = Response(media_type=JSON)
    call = Call(document, backend, caller, headers, Request(scope, receive), response)
    try:
        arguments = await route.quick.arguments(call)
        if arguments is None:
            return again
        with tracing.received(headers):
            result = await route.endpoint(**arguments)
    except Exception as error:  # the change may be stored, and FastAPI's path would store it again
        if isinstance(error, NotAllowed):
            address = grouped(scope["client"][0] if scope.get("client") else "")
            await note_refusal(backend, caller.name, address, route.operation, scope["path"], error)
        problem = problems.explained_to_callers(error)
        await problem(scope, receive, same_origin.with_headers(send))
        if not isinstance(error, (PenstockError, *problems.OUTAGES)):
            raise  # as for any other route, the server logs it
        return None
    content = result.model_dump_json(by_alias=True).encode()
    await send(
        {"type": "http.response.start", "status": route.status, "headers": _headers(response, content)}
    )
    await send({"type": "http.response.body", "body": content})
    return None


def _headers(response: Response, content: bytes) -> list[tuple[bytes, bytes]]:
    location = response.headers.get("location")
    return [
        (b"content-length", b"%d" % len(content)),
        (b"content-type", JSON.encode()),
        *([(b"location", location.encode("latin-1"))] if location is not None else []),
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
