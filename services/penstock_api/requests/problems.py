"""The answers of this application to errors, as problem details (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import asyncpg
import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from penstock import errors
from penstock.language.terms.options import dotted
from penstock.service.explain_errors import explained
from penstock.service.problems import KIND, Fault, Problem, http_status, problem_of, too_large

log = structlog.get_logger()

OUTAGES = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
"""The errors of the servers behind the API. The server of the application also logs any error that is neither one of
these nor ours."""

ANSWERS: dict[int | str, dict[str, object]] = {
    status: {"model": Problem, "description": HTTPStatus(status).phrase}
    for status in (400, 401, 403, 404, 409, 413, 422, 503)
}
"""The answers that every route of the API may give besides its own."""


TOO_MANY: dict[int | str, dict[str, object]] = {
    429: {"model": Problem, "description": HTTPStatus(429).phrase}
}
"""The additional answer of a route that asks for a password."""


def handle_errors(app: FastAPI) -> None:
    """Answer every error of this application with a problem document."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(ClientDisconnect, _disconnected)
    for kind in (errors.PenstockError, *OUTAGES, Exception):
        app.add_exception_handler(kind, _explained)


def answer(problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(
        problem.model_dump(exclude_none=True), problem.status, media_type=KIND, headers=headers
    )


_UNREADABLE = "the body cannot be read as JSON"


async def _disconnected(_: Request, __: Exception) -> Response:
    """Return an answer that is not read: the caller hung up before it had sent its whole body. It is not a fault of the API, so
    nothing is logged."""
    return Response(status_code=400)


async def _explained(_: Request, error: Exception) -> JSONResponse:
    return explained_to_callers(error)


def explained_to_callers(error: Exception) -> JSONResponse:
    """Return the answer that explains an error, and says what to do next."""
    explained_error = explained(error)
    if isinstance(error, asyncpg.InsufficientPrivilegeError) or isinstance(
        error.__cause__, asyncpg.InsufficientPrivilegeError
    ):  # the role of this process lacks a right, and not the caller
        explained_error = errors.ConfigurationError(explained_error.message, hint=explained_error.hint)
    status = http_status(explained_error)
    if status == 500:  # its text may reveal internals, so only the log has it
        instance = f"urn:uuid:{uuid4()}"
        log.error("api.failed", instance=instance, exc_info=error)
        return answer(
            Problem(
                title=HTTPStatus(500).phrase,
                status=500,
                detail="this should not have happened",
                hint="Please report it, with the lines about this instance from the log of the API.",
                instance=instance,
            )
        )
    if status == 503:
        log.warning("api.unavailable", reason=explained_error.message)
    return answer(*problem_of(explained_error))


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    faults = faults_of(error)
    detail = fault_sentence(faults)
    return answer(
        Problem(
            type="urn:penstock:error:InvalidInput",
            title=HTTPStatus(422).phrase,
            status=422,
            detail=detail,
            hint="Correct these fields. The page /docs describes each request.",
            faults=faults,
        )
    )


def faults_of(error: RequestValidationError, limit: int = 20) -> list[Fault]:
    """Return the first faults of a request, in words of this API."""
    return [Fault(at=dotted(item["loc"]), says=_fault_text(item)) for item in error.errors()[:limit]]


def fault_sentence(faults: Sequence[Fault]) -> str:
    """Return the faults as one text: `path.id is not an id ...; query.limit should be at most 1000`."""
    return "; ".join(f"{fault.at} {fault.says}" for fault in faults)


def _fault_text(item: Mapping[str, Any]) -> str:
    """Return a predicate about the faulty value. pydantic's own text begins with another name of the value."""
    text = _FAULT_TEXTS.get(item["type"])
    if text is not None:
        return text
    if item["type"] in ("too_short", "too_long") and isinstance(item["input"], str):  # a secret text
        bound = item["ctx"].get("min_length") or item["ctx"].get("max_length")
        return f"should have at {'least' if item['type'] == 'too_short' else 'most'} {bound} characters"
    message = str(item["msg"]).removeprefix("Value error, ")
    for subject in ("Input ", "String ", "List ", "Dictionary ", "Value "):
        message = message.removeprefix(subject)
    return message[:1].lower() + message[1:]


_FAULT_TEXTS: Mapping[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "is not a field of this request",
    **dict.fromkeys(
        ("uuid_parsing", "uuid_type"), "is not an id, such as 0198c7a2-5b1e-7c3d-9f4a-2d6e8b0c1f35"
    ),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "is not a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "is not a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "is neither true nor false"),
    "string_type": "is not text",
    "list_type": "is not a list",
    **dict.fromkeys(("dict_type", "model_attributes_type", "model_type"), "is not a JSON object"),
    "json_invalid": "is not JSON",
}
"""The texts for values of the wrong form, by the type of pydantic's error."""


async def refused(_: Request, error: Exception) -> JSONResponse:
    """Return the problem document of an error of the framework, such as an unknown address."""
    assert isinstance(error, HTTPException)
    if error.status_code == 413:
        return answer(too_large())
    hint = (
        "Check the address and the method. The page /docs lists all of them."
        if error.status_code in (404, 405)
        else None
    )
    if error.status_code == 400:  # the framework could not read the body
        hint = "Send JSON with at most 100 levels of objects and arrays, and numbers of at most 64 bits."
    title = HTTPStatus(error.status_code).phrase
    return answer(
        Problem(
            type="urn:penstock:error:InvalidInput" if error.status_code == 400 else "about:blank",
            title=title,
            status=error.status_code,
            detail=_UNREADABLE if error.status_code == 400 else str(error.detail),
            hint=hint,
        ),
        dict(error.headers or {}),
    )
