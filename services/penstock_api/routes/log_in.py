"""Logging in and out: what needs no token. What is the caller's is a cookie."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from penstock.errors import NotAuthenticated, TooManyAttempts
from penstock.operate import people
from penstock.store.session import audited_change
from penstock_api.auth import session_cookie
from penstock_api.backend import Here
from penstock_api.models import users as models
from penstock_api.requests.caller_address import address_of
from penstock_api.requests.problems import ANSWERS, TOO_MANY
from penstock_api.routes.router import operation_id

router = APIRouter(
    tags=["users"],
    responses={**ANSWERS, **TOO_MANY},
    generate_unique_id_function=operation_id,
)


LOG_IN = "users_log_in"
"""The name of a log-in in the audit."""


def log_in_caller(request: Request) -> people.LogInCaller:
    """Return what a log-in says of its caller: the address, the session before, and the browser."""
    return people.LogInCaller(
        address_of(request),
        session_cookie.secret_of(request),
        request.is_disconnected,
        request.headers.get("user-agent", ""),
    )


@router.post("/session")
async def log_in(body: models.LogIn, request: Request, response: Response, backend: Here) -> models.LoggedIn:
    """Begin a session: a cookie, always a new one. The one that came with this ends."""
    caller = log_in_caller(request)
    address = caller.address
    change = audited_change.Change(None, LOG_IN, request.url.path, details={"address": address})
    try:
        # Not a session of the pool: log-ins that hash a password would hold all of them.
        session = backend.client.session
        with audited_change.begun(change):
            new_session = await people.log_in(
                session, body.name, body.password.get_secret_value(), line=backend.log_ins, caller=caller
            )
    except (NotAuthenticated, TooManyAttempts) as refused:
        backend.refused_log_ins.note(body.name, address, refused.message)
        await backend.refused_calls.note(None, address, LOG_IN, f"user:{body.name[:100]}", refused.message)
        raise
    session_cookie.put(request, response, new_session.secret, new_session.expires_at)
    return models.LoggedIn(name=new_session.name, expires_at=new_session.expires_at)


@router.delete("/session", status_code=204)
async def log_out(request: Request, response: Response, backend: Here) -> None:
    """End the session of the cookie that came with this, if there is one."""
    secret = session_cookie.secret_of(request)
    if secret is not None:
        async with backend.pool.session() as session:
            await people.log_out(session, secret)
        backend.forget_callers()
    session_cookie.take_back(request, response)
