"""The sign-in with an identity provider, to which a person is sent and from which the person comes back with a code.

The values that were sent along are kept in a cookie of the person's browser. So any replica can handle the answer, and
no other browser can.
"""

from __future__ import annotations

import base64
import secrets
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

import orjson
import structlog
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from penstock.errors import NotAuthenticated, NotFound, PenstockError
from penstock.language.terms.ids import new_id
from penstock.operate import people, single_sign_on
from penstock.store.access.people import forget_failure
from penstock.store.session import audited_change
from penstock.store.session.noted_clock import noted
from penstock_api.auth import session_cookie
from penstock_api.backend import Backend, Here
from penstock_api.pages.sign_in import inside, refusal
from penstock_api.requests.caller_address import address_of
from penstock_api.routes.log_in import LOG_IN, log_in_caller

if TYPE_CHECKING:  # importing Authlib takes most of a second, so only where a provider is set
    from penstock_api.auth.identity_provider import Asked, IdentityProvider

log = structlog.get_logger()

router = APIRouter(include_in_schema=False)

AWAY = timedelta(minutes=10)
"""The time for which a person may be at the provider."""


@router.get("/sign-in/provider")
async def leave(request: Request, then: str = "/") -> Response:
    """Redirect the person to the provider."""
    from penstock_api.auth.identity_provider import Asked

    try:
        provider = _provider(request)
        auth_request = Asked(*(secrets.token_urlsafe(32) for _ in range(3)))
        answer = RedirectResponse(await provider.address(auth_request), 303)
    except PenstockError as error:
        return _said(request, error, inside(then))
    cookie = base64.urlsafe_b64encode(orjson.dumps({**asdict(auth_request), "then": inside(then)})).decode()
    session_cookie.put(request, answer, cookie, noted() + AWAY, session_cookie.ASKED)
    return answer


@router.get("/sign-in/provider/back")
async def arrive(request: Request, backend: Here) -> Response:
    """Sign in a person that comes back from the provider, if one of the person's claims is mapped to a role. The
    cookie is valid for one answer."""
    then, new_session = "/", None
    try:
        provider = _provider(request)
        auth_request, then = _asked(request)
        new_session = await _enter(request, backend, provider, auth_request)
    except PenstockError as error:
        address = address_of(request)
        log.warning("api.provider_sign_in_refused", address=address, reason=error.message)
        await backend.refused_calls.note(None, address, LOG_IN, request.url.path, error.message)
        answer = _said(request, error, then)
    else:
        answer = RedirectResponse(then, 303)
        session_cookie.put(request, answer, new_session.secret, new_session.expires_at)
        session_cookie.take_back(request, answer, session_cookie.TOKEN)
    session_cookie.take_back(request, answer, session_cookie.ASKED)
    return answer


async def _enter(
    request: Request, backend: Backend, provider: IdentityProvider, auth_request: Asked
) -> people.Begun:
    """Begin a session for the person. Until it succeeds, the attempt counts as failed for its address."""
    session, attempt = backend.client.session, new_id()
    await people.count_as_failed(session, attempt, f"provider {attempt}", address_of(request))
    identity = await provider.identify(auth_request, request.query_params)
    change = audited_change.Change(
        None, LOG_IN, request.url.path, provider.issuer, {"address": address_of(request)}
    )
    with audited_change.begun(change):
        new_session = await single_sign_on.enter(session, identity, caller=log_in_caller(request))
    await forget_failure(session, attempt)
    backend.forget_callers()  # the person's roles may have changed
    return new_session


def _provider(request: Request) -> IdentityProvider:
    provider: IdentityProvider | None = request.app.state.provider
    if provider is None:
        raise NotFound(
            "no sign-in provider is configured", hint="An administrator can set PENSTOCK_OIDC_ISSUER."
        )
    return provider


def _asked(request: Request) -> tuple[Asked, str]:
    from penstock_api.auth.identity_provider import Asked

    cookie = session_cookie.secret_of(request, session_cookie.ASKED)
    with suppress(ValueError, TypeError, AttributeError):
        fields = orjson.loads(base64.urlsafe_b64decode((cookie or "").encode()))
        then = inside(str(fields.pop("then")))
        auth_request = Asked(**fields)
        if all(isinstance(value, str) and len(value) > 40 for value in asdict(auth_request).values()):
            return auth_request, then
    raise NotAuthenticated(
        "this sign-in was started in another browser, or too long ago",
        hint="Sign in again, in one browser and within 10 minutes.",
    )


def _said(request: Request, error: PenstockError, then: str) -> Response:
    return refusal(request, "sign_in.html", error, then=then, hint=error.hint)
