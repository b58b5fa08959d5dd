"""Saved views on the page of executions, in a browser: saved, opened, changed, updated, deleted, and no longer valid."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from tests.penstock_api.pages.conftest import Site
from tests.penstock_api.pages.test_page import VIEWS, looking, severe_findings

LATE = "<b>Late</b> trucks"


@pytest.fixture
async def page(browser: Browser, site: Site) -> AsyncIterator[Page]:
    async with looking(browser, site) as opened:
        yield opened


async def test_view_is_saved_opened_changed_and_deleted(page: Page, site: Site) -> None:
    await page.goto(site.address + "/executions?status=failed&label=&since=24h")
    await page.get_by_text("Save this view …").press("Enter")
    await page.get_by_label("Name", exact=True).fill("Broken today")
    await page.get_by_label("Description").fill("for the morning")
    await page.get_by_label("Who sees it").select_option("true")
    await page.get_by_role("button", name="Save the view").press("Enter")
    await page.wait_for_url("**/executions?view=*")
    views = page.get_by_role("navigation", name="Saved views")
    await expect(views.locator("[aria-current]")).to_have_text("Broken today")
    await expect(page.locator(".acts-on-view")).to_contain_text("Broken today: for the morning shared")
    await expect(page.locator("#since")).to_have_value("24h")
    await expect(page.get_by_role("checkbox", name="failed")).to_be_checked()
    [row] = await site.house.rows("select * from saved_view where name = 'Broken today'")
    assert (row["owner"], row["shared"], row["version"]) == ("local access", True, 1)

    await page.get_by_text("Change …", exact=True).click()
    await page.get_by_label("Name", exact=True).fill("Broken lately")
    await page.get_by_label("Who sees it").select_option("false")
    await page.get_by_role("button", name="Change the view").click()
    await expect(views.locator("[aria-current]")).to_have_text("Broken lately")
    await expect(page.locator(".acts-on-view")).to_contain_text("private")

    await page.get_by_role("checkbox", name="timeout").check()
    await page.wait_for_url("**edits=*")
    await page.get_by_role("button", name="Update “Broken lately”").click()
    await page.wait_for_url("**/executions?view=*")
    await expect(page.get_by_role("checkbox", name="timeout")).to_be_checked()
    [row] = await site.house.rows("select * from saved_view where name = 'Broken lately'")
    assert (row["version"], row["shared"]) == (3, False)
    assert row["filters"] == '{"since": "24h", "status": ["failed", "timeout"]}'

    await page.get_by_text("Delete …", exact=True).click()
    await page.get_by_role("button", name="Delete the view").click()
    await page.wait_for_url(site.address + "/executions")
    assert await site.house.rows("select from saved_view where name = 'Broken lately'") == []


async def test_name_that_is_taken_is_refused_in_the_form(page: Page, site: Site) -> None:
    for _ in range(2):
        await page.goto(site.address + "/executions?status=completed")
        await page.get_by_text("Save this view …").click()
        await page.get_by_label("Name", exact=True).fill("Done")
        await page.get_by_role("button", name="Save the view").click()
        await expect(
            page.locator(".views [aria-current]", has_text="Done").or_(page.locator("#save-view .problem"))
        ).to_be_visible()
    await expect(page.locator("#save-view .problem")).to_contain_text(
        "there already is a view 'Done' of the same owner"
    )
    await site.house.rows("delete from saved_view where name = 'Done'")


async def test_view_that_changed_meanwhile_is_not_overwritten(page: Page, site: Site) -> None:
    await page.goto(site.address + f"/executions?status=failed&edits={site.ids['view']}")
    await site.house.rows("update saved_view set version = version + 1 where id = $1", site.ids["view"])
    await page.get_by_role("button", name=f"Update “{LATE}”").click()
    await expect(page.locator(".acts-on-view .problem").first).to_contain_text(
        "another caller has changed the view"
    )


async def test_view_that_is_not_valid_can_be_deleted_or_mended(page: Page, site: Site) -> None:
    await page.goto(site.address + f"/executions?view={site.ids['stale']}")
    await expect(page.get_by_role("alert").first).to_contain_text("unknown status 'parked'")
    await expect(page.get_by_text("Delete …", exact=True)).to_be_visible()
    await page.get_by_role("checkbox", name="failed").check()
    await page.wait_for_url("**edits=*")
    await expect(page.get_by_role("button", name="Update “An older one”")).to_be_visible()


async def test_view_that_was_deleted_says_so(site: Site) -> None:
    async with httpx.AsyncClient(base_url=site.address, headers={"accept": "text/html"}) as client:
        gone = await client.get(f"/executions?view={UUID(int=1)}")
        assert (gone.status_code, "The view may have been deleted" in gone.text) == (404, True)
        wrong = await client.get("/executions?view=7")
        assert wrong.status_code == 422


async def test_address_of_a_view_takes_more_filters(site: Site) -> None:
    async with httpx.AsyncClient(base_url=site.address, headers={"accept": "text/html"}) as client:
        text = (await client.get(f"/executions?view={site.ids['view']}&status=completed")).text
    assert 'name="status" value="completed" checked' in text
    assert 'name="status" value="failed" checked' not in text
    assert 'value="depot.drive"' in text


@pytest.mark.parametrize("query", ["view={view}", "status=failed&since=24h&edits={view}", "view={stale}"])
async def test_page_with_views_is_sound_from_all_sides(
    page: Page, site: Site, query: str, pictures: Path | None
) -> None:
    await page.goto(site.address + "/executions?" + query.format(**site.ids))
    await page.get_by_text("more saved view", exact=False).click()
    assert await page.locator("nav[aria-label='Saved views'] b").count() == 0
    forms = page.locator(".acts-on-view details > summary")
    for side, (width, height, scheme) in VIEWS.items():
        await page.set_viewport_size({"width": width, "height": height})
        await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        assert not await severe_findings(page, whole=side == "wide-light")
        await forms.first.click()  # the form lies on the page and covers parts of it
        if pictures is not None:
            await page.screenshot(path=pictures / f"views-{query[:9]}-{side}.png")
        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        await page.keyboard.press("Escape")
