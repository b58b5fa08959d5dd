"""The page of a person's own account."""

from __future__ import annotations

import re

from fastapi import APIRouter, Request, Response

from penstock_api.auth.access import READ, Asked
from penstock_api.backend import Db
from penstock_api.pages.page import PageRouter, page
from penstock_api.routes import account

router: APIRouter = PageRouter("account")

BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
"""A word of a `User-Agent` and the browser. Later ones stand in those of earlier ones, too."""
SYSTEMS = (("Android", "Android"), ("iPhone", "iOS"), ("iPad", "iOS"), ("Windows", "Windows"), ("Mac OS", "macOS"), ("Linux", "Linux"))


def browser_name(agent: str) -> str:
    """Return the browser and system of a `User-Agent`, as people call them: `Firefox on Linux`."""
    browser = next((name for word, name in BROWSERS if word in agent), None)
    system = next((name for word, name in SYSTEMS if word in agent), None)
    if browser is None:
        return re.split(r"[ (]", agent, maxsplit=1)[0] or "unknown"
    return f"{browser} on {system}" if system else browser


@router.get("/account", dependencies=[READ])
async def show(request: Request, session: Db, caller: Asked) -> Response:
    """Show the rights of the caller; of a person its sessions, too, and forms to change the password."""
    is_person = caller.name.startswith(account.PERSON)
    sessions = await account.list_sessions(request, session, caller) if is_person else []
    return page(request, "account.html", is_person=is_person, sessions=sessions, browser_name=browser_name)
