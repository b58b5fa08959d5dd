"""Where somebody says who he is, with a token, which his browser keeps where no script can read it."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from penstock_api.access import COOKIE
from penstock_api.backend import backend_of
from penstock_api.pages.page import form_of, page

router = APIRouter(include_in_schema=False)

KEPT_FOR = 12 * 3600
"""Seconds after which a browser forgets it."""


@router.get("/sign-in")
async def show(request: Request, then: str = "/") -> Response:
    """A form for a token."""
    return page(request, "sign_in.html", then=_inside(then), refused=False)


@router.post("/sign-in")
async def enter(request: Request) -> Response:
    """Keep the token, if it is one. Only who has the right one is told anything else than that it is wrong."""
    given = await form_of(request)
    then = _inside(given.get("then", "/"))
    secret = given.get("token", "").strip()
    if await backend_of(request).caller(secret) is None:
        return page(request, "sign_in.html", 401, then=then, refused=True)
    answer = RedirectResponse(then, 303)
    answer.set_cookie(
        COOKIE,
        secret,
        max_age=KEPT_FOR,
        httponly=True,
        samesite="strict",
        secure=_encrypted(request),
    )
    return answer


@router.post("/sign-out")
async def leave(request: Request) -> Response:
    """Forget it."""
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=_encrypted(request))
    return answer


def _encrypted(request: Request) -> bool:
    """Whoever claims so falsely only keeps his own browser from sending it."""
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))


def _inside(then: str) -> str:
    """A path of this host: anything else would lead somebody who has just signed in to somewhere else."""
    return then if then.startswith("/") and then[1:2] not in ("/", "\\") and then.isprintable() else "/"
