"""The quick way of a submit. What FastAPI does for any route (dependencies, parameters, two validations) takes more than
half of what a start costs; what comes often and is plainly right, is read here by its model alone, and handed to the same
function. Anything else goes FastAPI's way, which says what is wrong: so both answer alike, and the description is of both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fastapi import Request, Response
from pydantic import BaseModel, ValidationError

from penstock_api.backend import backend_of

Endpoint = TypeVar("Endpoint", bound=Callable[..., Awaitable[BaseModel]])

JSON = "application/json"
LONGEST_KEY = 1000
"""Characters of an idempotency key."""


def quickly(model: type[BaseModel]) -> Callable[[Endpoint], Endpoint]:
    """For a function that takes `given` (of this model), `here`, `caller`, `response` and `idempotency_key`, and nothing else."""

    def note(endpoint: Endpoint) -> Endpoint:
        endpoint.given = model  # type: ignore[attr-defined]
        return endpoint

    return note


async def answer(endpoint: Callable[..., Any], status: int, request: Request) -> Response | None:
    """What the endpoint says of a request whose caller is known; None where FastAPI has to read it."""
    headers = request.headers
    key = headers.get("idempotency-key")
    if headers.get("content-type") != JSON or "content-length" not in headers:
        return None
    if key is not None and len(key) > LONGEST_KEY:
        return None
    try:
        given = endpoint.given.model_validate_json(await request.body())  # type: ignore[attr-defined]
    except ValidationError:
        return None
    response = Response(status_code=status, media_type=JSON)
    said = await endpoint(
        given=given,
        here=backend_of(request),
        caller=request.state.caller,
        response=response,
        idempotency_key=key,
    )
    return Response(
        said.model_dump_json().encode(),
        status,
        {"location": response.headers["location"]},
        media_type=JSON,
    )
