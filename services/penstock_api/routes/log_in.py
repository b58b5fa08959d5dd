"""The routes for signing in and out, which need no token. The session is a cookie."""

from __future__ import annotations

from collections.abc import Awaitable

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from penstock.errors import NotAuthenticated, TooManyAttempts
from penstock.operate import people, second_factor
from penstock.operate.sign_in_queue import refusal
from penstock.store.session import audited_change
from penstock_api.auth import session_cookie
from penstock_api.auth.same_origin import Receive, Scope, Send, with_headers
from penstock_api.backend import Backend, Here
from penstock_api.models import users as models
from penstock_api.requests.caller_address import address_of, grouped
from penstock_api.requests.problems import ANSWERS, TOO_MANY, explained_to_callers
from penstock_api.routes.router import operation_id

router = APIRouter(
    tags=["users"],
    responses={**ANSWERS, **TOO_MANY},
    generate_unique_id_function=operation_id,
)


LOG_IN = "users_log_in"
LOG_IN_WITH_CODE = "users_log_in_with_code"
LOG_OUT = "users_log_out"
"""The operations of sign-ins and sign-outs in the audit."""


def log_in_caller(request: Request) -> people.LogInCaller:
    """Return the caller of a sign-in: its address, its previous session, and its browser."""
    return people.LogInCaller(
        address_of(request),
        session_cookie.secret_of(request),
        request.is_disconnected,
        request.headers.get("user-agent", ""),
    )


@router.post("/session")
async def log_in(body: models.LogIn, request: Request, response: Response, backend: Here) -> models.LoggedIn:
    """Sign in. The answer sets the cookie of a new session; a session that the request already has ends. For a user with a
    second factor the answer has `needs_code: true`."""
    caller = log_in_caller(request)
    # This is not a session of the pool: sign-ins hash passwords, and would occupy all sessions of the pool meanwhile.
    log_in = people.log_in(
        backend.client.session,
        body.name,
        body.password.get_secret_value(),
        line=backend.log_ins,
        caller=caller,
    )
    return await _enter(request, response, backend, LOG_IN, f"user:{body.name[:100]}", log_in)


@router.post("/session/code")
async def log_in_with_code(
    body: models.Code, request: Request, response: Response, backend: Here
) -> models.LoggedIn:
    """Complete a session with a code of the second factor, after the password. A code is valid once."""
    log_in = second_factor.log_in_with_code(backend.client.session, body.code, caller=log_in_caller(request))
    return await _enter(request, response, backend, LOG_IN_WITH_CODE, request.url.path, log_in)


async def _enter(
    request: Request,
    response: Response,
    backend: Backend,
    operation: str,
    target: str,
    log_in: Awaitable[people.Begun],
) -> models.LoggedIn:
    """Await a sign-in, set the cookie of its session, and audit it or its refusal."""
    address = address_of(request)
    change = audited_change.Change(None, operation, request.url.path, details={"address": address})
    try:
        with audited_change.begun(change):
            new_session = await log_in
    except (NotAuthenticated, TooManyAttempts) as refused:
        backend.refused_log_ins.note(target.removeprefix("user:"), address, refused.message)
        await backend.refused_calls.note(None, address, operation, target, refused.message)
        raise
    session_cookie.put(request, response, new_session.secret, new_session.expires_at)
    return models.LoggedIn(
        name=new_session.name, expires_at=new_session.expires_at, needs_code=new_session.needs_code
    )


NO_PLACE = refusal()
NO_PLACE_ANSWER: Response = explained_to_callers(NO_PLACE)
NO_PLACE_PAGE: Response = HTMLResponse(
    f"<!doctype html><html lang=en><meta charset=utf-8><title>Sign in</title><h1>Sign in</h1><p role=alert>{NO_PLACE.message}. "
    f"{NO_PLACE.hint}</p><p><a href=sign-in>Sign in</a></p>",
    NO_PLACE_ANSWER.status_code,
    headers={"retry-after": NO_PLACE_ANSWER.headers["retry-after"]},
)
"""The same for a browser. It is not the page of the form: to render that takes longer than all else of a refusal."""


async def refused_unread(
    backend: Backend, scope: Scope, receive: Receive, send: Send, *, with_page: bool = False
) -> bool:
    """Refuse a sign-in unread if the queue of sign-ins is full. Return whether it was refused. `with_page`: a browser sent the
    form.

    In a flood nearly all requests end here. FastAPI's work for one takes longer than the rest of a refusal.
    """
    address = grouped(scope["client"][0] if scope.get("client") else "")
    if not backend.log_ins.refuses(address):
        return False
    backend.refused_log_ins.note("", address, NO_PLACE.message)
    await backend.refused_calls.note(None, address, LOG_IN, scope["path"], NO_PLACE.message)
    await (NO_PLACE_PAGE if with_page else NO_PLACE_ANSWER)(scope, receive, with_headers(send))
    return True


@router.delete("/session", status_code=204)
async def log_out(request: Request, response: Response, backend: Here) -> None:
    """End the session of the request's cookie, if there is one."""
    secret = session_cookie.secret_of(request)
    if secret is not None:
        async with backend.pool.session() as session:
            await people.log_out(session, secret, LOG_OUT, address_of(request))
        backend.forget_callers()
    session_cookie.take_back(request, response)
