"""The page of a person's own account."""

from __future__ import annotations

import re

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import SecretStr

from penstock.errors import InvalidInput, NotAllowed
from penstock.operate import second_factor
from penstock_api.auth.access import ACCOUNT, READ, Asked, is_person
from penstock_api.backend import Db, Here
from penstock_api.models.users import Code, OldPassword
from penstock_api.pages.page import PageRouter, form_of, page
from penstock_api.routes import account

router: APIRouter = PageRouter("account")

BROWSERS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
"""A word of a `User-Agent` and its browser. Earlier entries take precedence, as their agents also contain the words of
later ones."""
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iOS"),
    ("iPad", "iOS"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)


def browser_name(agent: str) -> str:
    """Return the browser and system of a `User-Agent` for people: `Firefox on Linux`."""
    browser = next((name for word, name in BROWSERS if word in agent), None)
    system = next((name for word, name in SYSTEMS if word in agent), None)
    if browser is None:
        return re.split(r"[ (]", agent, maxsplit=1)[0] or "unknown"
    return f"{browser} on {system}" if system else browser


@router.get("/account", dependencies=[READ])
async def show(request: Request, session: Db, caller: Asked) -> Response:
    """Show the rights of the caller. For a person, also show the second factor and the sessions, with forms to change
    them."""
    if not is_person(caller):
        return page(request, "account.html", is_person=False)
    return page(
        request,
        "account.html",
        is_person=True,
        totp=await account.show_totp(session, caller),
        sessions=await account.list_sessions(request, session, caller),
        browser_name=browser_name,
    )


@router.post("/account/totp", dependencies=[ACCOUNT])
async def begin_totp(request: Request, caller: Asked, backend: Here) -> Response:
    """Show a new second factor, with a form for its first code."""
    factor = await account.begin_totp(await _old_password(request), request, caller, backend)
    return page(request, "account_totp.html", factor=factor, refused=None)


@router.post("/account/totp/confirm", dependencies=[ACCOUNT])
async def confirm_totp(request: Request, session: Db, caller: Asked, backend: Here) -> Response:
    """Show the recovery codes, once. If the code is wrong, show the form again."""
    code = (await form_of(request)).get("code", "")[:100]
    try:
        confirmed = await account.confirm_totp(Code(code=code), request, session, caller, backend)
    except NotAllowed as refused:
        factor = await second_factor.pending(session, account.name_of(caller))
        says = f"{refused.message}. {refused.hint}"
        return page(request, "account_totp.html", 403, factor=factor, refused=says)
    return page(request, "account_totp.html", codes=confirmed.recovery_codes)


@router.post("/account/totp/off", dependencies=[ACCOUNT])
async def turn_off_totp(request: Request, caller: Asked, backend: Here) -> Response:
    """Turn off the second factor, and show the account again."""
    await account.turn_off_totp(await _old_password(request), request, caller, backend)
    return RedirectResponse("/account", 303)


async def _old_password(request: Request) -> OldPassword:
    password = (await form_of(request)).get("current_password", "")
    if not password:
        raise InvalidInput(
            "your current password is missing", hint="Enter the current password on the page Account."
        )
    return OldPassword(current_password=SecretStr(password[:1000]))
