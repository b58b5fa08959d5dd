"""The page of holds lists and releases them, and what they keep says so elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from penstock import Schedule, action
from tests.penstock.cli.commands import penstock
from tests.penstock_api.conftest import Api
from tests.penstock_api.pages import depot
from tests.penstock_api.pages.conftest import Site
from tests.penstock_api.pages.test_page import severe_findings

V1 = "/api/v1"
HTML = {"accept": "text/html"}


@action(pack="ferry")
async def cross() -> None: ...


@action(pack="ferry", route="river")
async def row() -> None: ...


@action(pack="ferry")
async def free() -> None: ...


NIGHTLY = Schedule("ferry.nightly", action=cross, cron="0 2 * * *")
BY_ROUTE = Schedule("ferry.rowed", action=row, cron="0 3 * * *")
FREE = Schedule("ferry.free", action=free, cron="0 4 * * *")
OVERDUE = "update schedule set next_due = clock_timestamp() - interval '2 min' where ref in ('ferry.nightly', 'ferry.rowed')"
BARS = re.compile(r'<svg class="fires".*?(<rect)', re.DOTALL)


async def text_of(call: httpx.AsyncClient, path: str) -> str:
    page = await call.get(path, headers=HTML)
    assert page.status_code == 200, page.text
    return re.sub(r"(<[^>]*>|\s)+", " ", page.text)


async def test_schedule_and_action_name_the_hold_that_keeps_them(
    api: Api, call: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.house.apply(cross, row, free, NIGHTLY, BY_ROUTE, FREE)
    schedules = {row["ref"]: row["held"] for row in (await call.get(f"{V1}/schedules")).json()}
    assert (schedules["ferry.nightly"], schedules["ferry.rowed"]) == (None, None)
    for kind, name in (("action", "ferry.cross"), ("route", "river")):
        answer = await call.post(f"{V1}/holds", json={"kind": kind, "name": name, "reason": "high water"})
        assert answer.status_code == 204, answer.text
    schedules = {row["ref"]: row["held"] for row in (await call.get(f"{V1}/schedules")).json()}
    assert (schedules["ferry.nightly"], schedules["ferry.rowed"]) == ("action ferry.cross", "route river")
    actions = {row["ref"]: row["held"] for row in (await call.get(f"{V1}/actions")).json()}
    assert (actions["ferry.cross"], actions["ferry.row"]) == ("action ferry.cross", None)
    assert " ferry.cross held action" in await text_of(call, "/actions?find=ferry")
    assert "active held" in await text_of(call, "/schedules?find=ferry.nightly")
    page = await text_of(call, "/schedules/ferry.rowed")
    assert "The route river is on hold , so the schedule starts nothing." in page
    assert "The next start is" not in page
    assert "No execution starts at these times while the hold lasts." in page
    assert "The next start is" in await text_of(call, "/schedules/ferry.free")
    schedules_page = (await call.get("/schedules?find=ferry", headers=HTML)).text
    assert [bool(drawn) for drawn in BARS.findall(schedules_page)] == [True]
    assert schedules_page.count("after the release") == 2
    overview = await text_of(call, "/")
    assert "The action ferry.cross was put on hold by token:all: high water" in overview
    await api.house.rows(OVERDUE)
    troubles = [row["schedule"] or "" for row in (await call.get(f"{V1}/schedule-health")).json()]
    assert not [ref for ref in troubles if ref.startswith("ferry.")]
    assert "ferry.nightly: its start is" not in await text_of(call, "/")

    database_url = api.house.settings().database_url
    assert database_url is not None
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database_url.get_secret_value())
    monkeypatch.setenv("COLUMNS", "250")
    listed = (await penstock("actions")).out
    assert re.search(r"ferry\.cross +yes +action ferry\.cross", listed), listed
    listed = (await penstock("schedule", "list")).out
    assert re.search(r"ferry\.rowed +active +route river", listed), listed
    rows = {
        document["ref"]: document["held"]
        for document in (await penstock("schedule", "list", "--json")).documents
    }
    assert rows["ferry.nightly"] == "action ferry.cross"

    for kind, name in (("action", "ferry.cross"), ("route", "river")):
        body = {"kind": kind, "name": name}
        assert (await call.post(f"{V1}/holds/release", json=body)).status_code == 204
    assert " ferry.cross action" in await text_of(call, "/actions?find=ferry")
    assert "on hold" not in await text_of(call, "/schedules/ferry.rowed")
    assert "ferry.cross was put on hold" not in await text_of(call, "/")
    assert (await call.get(f"{V1}/actions/ferry.cross")).json()["held"] is None


async def test_each_hold_links_the_objects_that_it_covers(api: Api, call: httpx.AsyncClient) -> None:
    await api.house.apply(cross, row)
    places = {
        ("action", "ferry.cross"): "/actions/ferry.cross",
        ("pack", "ferry"): "/actions?find=ferry.",
        ("route", "river"): "/workers#routes",
        ("tenant", "public"): "/executions?tenant=public",
    }
    for kind, name in places:
        await api.house.client.holds.hold(kind, name, by="ada")
    text = (await call.get("/holds", headers=HTML)).text
    for kind, name in places:
        await api.house.client.holds.release(kind, name)
    for (_, name), place in places.items():
        assert f'<a href="{place}">{name}</a>' in text
        assert (await call.get(place, headers=HTML)).status_code == 200


async def test_release_is_offered_to_operators_of_all_tenants_alone(api: Api) -> None:
    await api.house.apply(cross)
    await api.house.client.holds.hold("pack", "ferry", by="ada", reason="high water")
    await api.token("looks", "read")
    await api.token("one-tenant-of-holds", "read", tenants=("acme",))
    async with api.caller() as caller:
        for path in ("/holds", "/actions/ferry.cross"):
            text = (await caller.get(path, headers=HTML)).text
            assert "POST /api/v1/holds/release" in text
            assert 'href="/holds"' in text
    async with api.caller("looks") as caller:
        text = (await caller.get("/holds", headers=HTML)).text
        assert "high water" in text
        assert "/api/v1/holds" not in text
        assert "holds/release" not in (await caller.get("/actions/ferry.cross", headers=HTML)).text
    async with api.caller("one-tenant-of-holds") as caller:
        assert (await caller.get("/holds", headers=HTML)).status_code == 403
        text = (await caller.get("/actions/ferry.cross", headers=HTML)).text
        assert 'href="/holds"' not in text
        assert "high water" not in text
    await api.house.client.holds.release("pack", "ferry")


HELD = "select from held_execution having count(*) = $1"
RELEASING = "select from hold where name = 'depot.weigh' and rate_count is not null"


@pytest.mark.parametrize("width", [1280, 390])
async def test_hold_is_made_and_released_on_its_page(
    browser: Browser, site: Site, pictures: Path | None, width: int
) -> None:
    context = await browser.new_context(viewport={"width": width, "height": 900}, base_url=site.address)
    page = await context.new_page()
    await make_hold(page)
    client = site.house.client
    ids = [await client.start("depot.weigh", {"parcel": number}) for number in (1, 2, 3)]
    await site.house.until(HELD, 3)
    row = page.locator("tr[data-row]", has_text="depot.weigh")
    await expect(row).to_contain_text("scales are checked")
    await expect(row.locator('[data-name="waiting"]')).to_have_text("3")
    assert await severe_findings(page, whole=True) == []
    across = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert across <= 0
    if pictures is not None:
        await page.screenshot(path=pictures / f"holds_{width}.png", full_page=True)
    await row.locator('[data-name="waiting"] a').click()
    await expect(page.locator(f'a[href="/executions/{ids[0]}"]')).to_be_visible()
    await page.goto("/actions/depot.weigh")
    if pictures is not None:
        await page.screenshot(path=pictures / f"held_action_{width}.png")
    await page.locator("summary", has_text="Release gradually").click()
    await page.get_by_label("Rate of starts").fill("1/h")
    await page.get_by_role("button", name="Release at this rate").click()
    await site.house.until(RELEASING)
    await page.goto("/")
    await expect(page.locator("#attention")).to_contain_text("The action depot.weigh is being released")
    await page.goto("/holds")
    await expect(row).to_contain_text("Being released for")
    if pictures is not None:
        await page.screenshot(path=pictures / f"holds_releasing_{width}.png", full_page=True)
    await row.get_by_role("button", name="Release action depot.weigh").click()
    await expect(row).to_have_count(0)
    for id in ids:
        await client.result(id, timeout=20)
    await context.close()


async def make_hold(page: Page) -> None:
    await page.goto("/holds")
    await page.locator("summary", has_text="Hold …").click()
    await page.get_by_label("Name", exact=True).fill("depot.weigh")
    await page.get_by_label("Reason").fill("scales are checked")
    await page.get_by_role("button", name="Hold it").click()
    await page.locator("tr[data-row]", has_text="depot.weigh").wait_for()


async def test_name_without_definition_is_held_by_force_only(site: Site, browser: Browser) -> None:
    context = await browser.new_context(base_url=site.address)
    page = await context.new_page()
    await page.goto("/holds")
    await page.locator("summary", has_text="Hold …").click()
    await page.get_by_label("Name", exact=True).fill("depot.later")
    await page.get_by_role("button", name="Hold it").click()
    await expect(page.locator("#do-hold .problem")).to_contain_text("there is no action 'depot.later' so far")
    await page.get_by_label("If the name is unknown").select_option(
        label="hold the future executions of this name"
    )
    await page.get_by_role("button", name="Hold it").click()
    row = page.locator("tr[data-row]", has_text="depot.later")
    await row.get_by_role("button", name="Release action depot.later").click()
    await expect(row).to_have_count(0)
    await context.close()


async def test_text_of_a_hold_is_escaped(site: Site, browser: Browser) -> None:
    context = await browser.new_context(base_url=site.address)
    page = await context.new_page()
    await page.goto("/holds")
    await expect(page.locator("tr[data-row]", has_text="harbour")).to_contain_text(depot.SHOWN)
    assert await page.evaluate("window.hit") is None
    await context.close()
