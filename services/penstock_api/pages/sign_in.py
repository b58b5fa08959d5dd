"""The sign-in page, for a name, a password and the code of a second factor, or for a token. The browser keeps the
session or the token where no script can read it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

import structlog
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from penstock.errors import NotAuthenticated, PenstockError
from penstock.operate import access
from penstock.operate.people import digest_of
from penstock.service.problems import http_status, problem_of
from penstock.store.access.people import id_token_of
from penstock.store.session import audited_change
from penstock.store.session.noted_clock import noted
from penstock_api.auth import session_cookie
from penstock_api.backend import Backend, Here
from penstock_api.models.users import Code, LogIn
from penstock_api.pages.page import form_of, page
from penstock_api.requests.caller_address import address_of
from penstock_api.routes import log_in

if TYPE_CHECKING:  # importing Authlib takes most of a second, so only where a provider is set
    from penstock_api.auth.identity_provider import IdentityProvider

log = structlog.get_logger()

router = APIRouter(include_in_schema=False)

TOKEN_SIGN_IN = "tokens_sign_in"
"""The operation of a sign-in with a token in the audit."""
KEPT_FOR = timedelta(hours=12)
"""The time after which a browser forgets a token."""


@router.get("/sign-in")
async def show(request: Request, then: str = "/") -> Response:
    """Show a form for a name and password, and one for a token."""
    return page(request, "sign_in.html", then=inside(then), refused=None)


@router.post("/sign-in")
async def enter(request: Request, backend: Here) -> Response:
    """Sign in a known caller. An unknown one is told only that it is unknown."""
    form = await form_of(request)
    then = inside(form.get("then", "/"))
    answer = RedirectResponse(then, 303)
    try:
        if "token" in form:
            await _keep(request, backend, answer, form["token"].strip())
        else:
            body = LogIn.model_validate({name: form.get(name, "") for name in ("name", "password")})
            if (await log_in.log_in(body, request, answer, backend)).needs_code:
                answer.headers["location"] = f"/sign-in/code?then={quote(then, safe='')}"
    except ValidationError:
        return page(
            request, "sign_in.html", 422, then=then, refused="The name, password or token is too long."
        )
    except PenstockError as error:
        return refusal(request, "sign_in.html", error, then=then, name=form.get("name", ""))
    return answer


@router.get("/sign-in/code")
async def ask_for_code(request: Request, then: str = "/") -> Response:
    """Show a form for the code of the second factor. A sign-in waits for the code for five minutes."""
    return page(request, "sign_in_code.html", then=inside(then), refused=None)


@router.post("/sign-in/code")
async def enter_with_code(request: Request, backend: Here) -> Response:
    """Sign in a user with a valid code, after the right password."""
    form = await form_of(request)
    then = inside(form.get("then", "/"))
    answer = RedirectResponse(then, 303)
    try:
        await log_in.log_in_with_code(Code(code=form.get("code", "")), request, answer, backend)
    except ValidationError:
        return page(request, "sign_in_code.html", 422, then=then, refused="The code is too long.")
    except PenstockError as error:
        return refusal(request, "sign_in_code.html", error, then=then, hint=error.hint)
    return answer


def refusal(request: Request, template: str, error: PenstockError, **values: object) -> Response:
    """Return the page of a refused sign-in, with the time after which another try makes sense, if the error has one."""
    answer = page(request, template, http_status(error), refused=error.message, **values)
    _, headers = problem_of(error)
    if "retry-after" in headers:
        answer.headers["retry-after"] = headers["retry-after"]
    return answer


async def _keep(request: Request, backend: Here, answer: Response, token: str) -> None:
    caller = await backend.caller(token) if token.startswith(access.PREFIX) else None
    address = address_of(request)
    if caller is None:
        refused = NotAuthenticated("this token is unknown, or has expired")
        await backend.refused_calls.note(None, address, TOKEN_SIGN_IN, request.url.path, refused.message)
        raise refused
    change = audited_change.Change(caller.name, TOKEN_SIGN_IN, request.url.path, details={"address": address})
    async with backend.pool.session() as session:
        await audited_change.note(session, change, audited_change.DONE)
    session_cookie.put(request, answer, token, noted() + KEPT_FOR, session_cookie.TOKEN)


@router.post("/sign-out")
async def leave(request: Request, backend: Here) -> Response:
    """End the session, and forget the token. A person of an identity provider is led there to sign out of it too."""
    address = await _log_out_address(request, backend)
    answer: Response = RedirectResponse("/sign-in", 303)
    if address is not None:
        # A page instead of a redirect: browsers apply `form-action`, which permits this host only, to redirects of
        # forms.
        answer = page(request, "signed_out.html", address=address)
    await log_in.log_out(request, answer, backend)
    session_cookie.take_back(request, answer, session_cookie.TOKEN)
    return answer


async def _log_out_address(request: Request, backend: Backend) -> str | None:
    """Return the address at which the caller signs out of its provider. Return None without a provider, or if it is
    down."""
    provider: IdentityProvider | None = request.app.state.provider
    secret = session_cookie.secret_of(request)
    if provider is None or secret is None:
        return None
    async with backend.pool.session() as session:
        id_token = await id_token_of(session, digest_of(secret))
    if id_token is None:
        return None
    try:
        return await provider.log_out_address(id_token)
    except PenstockError as error:
        log.warning("api.provider_sign_out_failed", reason=error.message)
        return None


def inside(then: str) -> str:
    """Return `then` if it is a path of this host. Any other address could lead a person that has just signed in to
    another site."""
    return then if then.startswith("/") and then[1:2] not in ("/", "\\") and then.isprintable() else "/"
