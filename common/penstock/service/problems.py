"""The answers of HTTP to errors: problem details (RFC 9457) with the text and the hint that the command line shows."""

from __future__ import annotations

from http import HTTPStatus

from pydantic import BaseModel, Field

from penstock import errors

KIND = "application/problem+json"
STATUSES: dict[type[errors.PenstockError], int] = {
    errors.InvalidInput: 422,
    errors.DefinitionError: 422,
    errors.ResultNotStorable: 422,
    errors.Undecodable: 422,
    errors.AddressRefused: 422,
    errors.NotAuthenticated: 401,
    errors.NotAllowed: 403,
    errors.TooManyAttempts: 429,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.ClaimLost: 409,
    errors.IllegalMove: 409,
    errors.ConnectionFailed: 503,
    errors.ConfigurationError: 503,
    errors.PartitionDropped: 503,
    errors.WrongClock: 503,
}
"""The HTTP status for each class of errors. A subclass has the status of its base, and any other error has 500."""


class Fault(BaseModel):
    """A fault in a request."""

    at: str = Field(description="The place: `body.params`, `query.limit`.")
    says: str = Field(description="The fault, such as `is missing`.")


class Problem(BaseModel):
    """A refused request: the reason, and what to do next."""

    type: str = Field(
        default="about:blank",
        description="The kind of the problem, for programs, such as `urn:penstock:error:NotFound`.",
    )
    title: str = Field(description="The name of the HTTP status, such as Not Found.")
    status: int = Field(description="The HTTP status, such as 404.")
    detail: str = Field(description="The fault, as a sentence.")
    hint: str | None = Field(
        default=None, description="The next step that helps; null or omitted: none is known."
    )
    faults: list[Fault] | None = Field(
        default=None,
        description="The faulty fields, if the request does not have the described form; else null or omitted.",
    )
    instance: str | None = Field(
        default=None, description="The id of this case in the log; null or omitted: the log has none."
    )


BODY_SLACK = 64 * 1024
"""The bytes that the body of a request may have besides the largest payload."""


def too_large() -> Problem:
    """Return the refusal of a body that is larger than every request may be."""
    return Problem(
        title=HTTPStatus(413).phrase,
        status=413,
        detail="the body of this request is too large",
        hint="Put large data in an object store and send a link, or raise PENSTOCK_PAYLOAD_CAP.",
    )


def http_status(error: errors.PenstockError) -> int:
    """Return the HTTP status of an error. It is 500 for an error that no caller can mend."""
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), 500)


def problem_of(error: errors.PenstockError) -> tuple[Problem, dict[str, str]]:
    """Return the problem document of an error that has a status of its own, and the headers of the answer."""
    status = http_status(error)
    headers = {"www-authenticate": 'Bearer realm="penstock"'} if status == 401 else {}
    if isinstance(error, errors.TooManyAttempts):
        headers["retry-after"] = f"{error.seconds:.0f}"
    if status == 503:
        headers["retry-after"] = "1"
    problem = Problem(
        type=f"urn:penstock:error:{type(error).__name__}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=error.message,
        hint=error.hint,
    )
    return problem, headers
