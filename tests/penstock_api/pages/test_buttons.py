"""The buttons by role. Every page of the table is read by people of every role. Each form on it is asked of the
server for each of them. It is shown to exactly those callers that the server would let through."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import compile_path

from penstock import Later, action, later
from penstock.client.limits import Limits
from penstock.client.schedules import Schedules
from penstock.operate import definitions, people, workers
from penstock.operate.access import create_token
from penstock_api.app import make_app
from penstock_api.backend import Backend
from penstock_api.pages.page import PageRoute
from tests.flows.installation import Installation
from tests.penstock.operate.keys import KEY
from tests.penstock_api.auth.test_access import OPEN, routes
from tests.penstock_api.conftest import THEIRS
from tests.penstock_api.pages import depot
from tests.penstock_api.pages.forms import Form, forms
from tests.penstock_api.pages.test_page import PAGES
from tests.servers import databases
from tests.servers.postgres import Postgres

TEMPLATES = Path(__file__).parents[3] / "services" / "penstock_api" / "pages" / "templates"
HTML = {"accept": "text/html", "sec-fetch-site": "same-origin"}
PASSWORD = "a password of somebody's"
MORE = {
    "paused": "/executions/{paused}",
    "theirs": "/executions/{theirs}",
    "steps": "/executions/{packs}",
    "later": "/executions/{later}",
    "outside": "/executions/{outside}",
    "many": "/executions/many?does=cancel&action=depot.check",
    "letters": "/dead-letters/many?does=replay",
    "schedule-off": "/schedules/depot.hourly",
    "rule-of-several-events": "/rules/depot.pair",
    "limit-by-hand": "/limits/depot.spare",
}
"""Pages that no browser has to look at, for what is only to be done with things that stand as these do."""
EVERYWHERE = {
    "viewer": ("viewer",),
    "operator": ("operator",),
    "developer": ("developer",),
    "all": ("administrator",),
}
OF_THEIRS = {f"{name} of theirs": roles for name, roles in EVERYWHERE.items()}
MIXED = "viewer, and operator of theirs"


@action(pack="depot")
async def send_out() -> Later:
    return later("truck 1")


@dataclass(slots=True)
class Depot:
    app: FastAPI
    ids: dict[str, UUID]
    browsers: dict[str, httpx.AsyncClient]

    def pages(self) -> dict[str, str]:
        return {name: path.format(**self.ids) for name, path in (PAGES | MORE).items() if name != "error"}


@pytest.fixture
async def house(postgres_server: Postgres, template: str) -> AsyncIterator[Installation]:
    name = databases.new_name()
    database = await databases.create(postgres_server, name, template=template)
    async with Installation(database, None, secrets_key=KEY) as started:
        await started.start(*depot.ALL, depot.wide(320), send_out)
        yield started
    await databases.drop(postgres_server, name)


@pytest.fixture
async def site(house: Installation) -> AsyncIterator[Depot]:
    ids = await depot.fill(house)
    ids |= await more(house)
    app = make_app(Backend.of(house.client))
    async with AsyncExitStack() as stack:
        found = Depot(app, ids, {})
        for name, roles in {**EVERYWHERE, **OF_THEIRS, MIXED: ()}.items():
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            browser = httpx.AsyncClient(transport=transport, base_url="http://penstock", headers=HTML)
            found.browsers[name] = await stack.enter_async_context(browser)
            await sign_in(house, browser, name, roles)
        yield found
        await app.state.backend.changes.close()
        await house.client.cancel(*ids.values(), reason="the test is over")


async def sign_in(house: Installation, browser: httpx.AsyncClient, name: str, roles: tuple[str, ...]) -> None:
    if name == MIXED:
        await people.create(house.session, "ada", PASSWORD, ["viewer"], by="test")
        await people.set_roles(house.session, "ada", ["operator"], [THEIRS])
        given = {"name": "ada", "password": PASSWORD}
    else:
        tenants = (THEIRS,) if "theirs" in name else ()
        _, secret = await create_token(
            house.session, name.replace(" ", "-"), roles, tenants=tenants, by="test"
        )
        given = {"token": secret}
    for _ in range(2 if name == MIXED else 1):  # another session, which can be ended
        browser.cookies.clear()
        assert (await browser.post("/sign-in", data=given)).status_code == 303


async def more(house: Installation) -> dict[str, UUID]:
    """Start objects with which pages have buttons that none of the others has."""
    client = house.client
    found = {
        "paused": await client.start("depot.tour"),
        "theirs": await client.start("depot.confirm", tenant=THEIRS),
        "packs": await client.start("depot.pack_up", {"parcels": 2, "fail": True}),
        "later": await client.start("depot.pack_up", {"parcels": 2, "fail": False}, delay=3600),
        "outside": await client.start("depot.send_out"),
    }
    await client.command(found["paused"], "pause", by="test")
    await house.until("select 1 from paused_workflow where execution_id = $1", found["paused"])
    for name in ("theirs", "outside"):
        await house.until("select 1 from execution where id = $1 and status = 'waiting'", found[name])
    parts = await house.parts()
    await Limits(house.session, parts.publisher).set("depot.spare", max=3, scope="depot.weigh")
    await Schedules(house.session, parts.publisher).disable("depot.hourly")
    await definitions.enable_rule(house.session, "depot.any", False)
    await house.worker(depot.weigh, name="spare")
    await house.until("select 1 from process where name = 'spare'")
    await workers.cordon(house.session, ["spare"])
    return found


def page_routes(app: FastAPI) -> set[str]:
    return {path for method, path, route in routes(app) if method == "GET" and isinstance(route, PageRoute)}


async def test_a_button_is_shown_to_exactly_those_whose_request_is_let_through(site: Depot) -> None:
    shown: dict[str, dict[tuple[str, str], Form]] = {who: {} for who in site.browsers}
    readers: dict[tuple[str, str], set[str]] = {}
    for path in site.pages().values():
        let_in: set[str] = set()
        found: set[tuple[str, str]] = set()
        for who, browser in site.browsers.items():
            page = await browser.get(path)
            assert page.status_code in (200, 403, 404), (path, who, page.text)
            if page.status_code == 200:
                let_in.add(who)
                these = {form.key: form for form in forms(page.text, path)}
                shown[who] = these | shown[who]
                found |= these.keys()
        for key in found:
            readers.setdefault(key, set()).update(let_in)
    missing = unseen(site.app, {path.partition("?")[0] for path in site.pages().values()}, set(readers))
    assert not missing, missing
    wrong: list[str] = []
    for key in readers:
        if key[1] in OPEN or ends_access(key[1]):
            continue
        for who, browser in site.browsers.items():
            mine = shown[who].get(key)
            form = mine or next(one[key] for one in shown.values() if key in one)
            answer = await form.send(browser)
            if complaint := judged(answer, mine is not None, who in readers[key]):
                wrong.append(f"{who}: {key}: {complaint}")
    assert not wrong, "\n".join(wrong)


def ends_access(path: str) -> bool:
    """Return whether a request takes access away from a caller of this test, which could then ask for nothing more."""
    names = ("ada", *(name.replace(" ", "-") for name in (*EVERYWHERE, *OF_THEIRS)))
    return any(
        f"{path}/".startswith(f"/api/v1/{kind}/{name}/") for kind in ("tokens", "users") for name in names
    )


def judged(answer: httpx.Response, shown: bool, reads: bool) -> str | None:
    """Return the fault of this answer for a person that is shown the form, or reads the page without it, or None. An
    object of another tenant is not there (404) for a person that may not even look at it."""
    if answer.status_code >= 500 or answer.status_code in (401, 405):
        return f"answered with {answer.status_code}"
    if shown:
        return f"it is shown, and refused: {answer.text}" if answer.status_code == 403 else None
    if answer.status_code in (403, 404):
        return None
    return f"{'it is not shown' if reads else 'the page is refused'}, and it was let through: {answer.status_code}"


def unseen(app: FastAPI, paths: set[str], seen: set[tuple[str, str]]) -> list[str]:
    """Return the pages of the table that were not visited, and the requests of templates that no page has shown."""
    missing = [one for one in page_routes(app) if not any(compile_path(one)[0].match(path) for path in paths)]
    ends = {(method, address.rpartition("/")[2]) for method, address in seen}
    for file in TEMPLATES.glob("*.html"):
        for method, named in re.findall(r"\b(POST|PUT|PATCH|DELETE) ([^,>\n]*)", file.read_text()):
            end = re.search(r"/([a-z-]+)[\" ]", named)
            if end is not None and (method, end[1]) not in ends:
                missing.append(f"{file.name}: {method} .../{end[1]}")
    return missing
