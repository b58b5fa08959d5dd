"""The account of a person in a real browser: sound from all sides, and led through a second factor."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from penstock.operate import people
from tests.penstock_api.conftest import Api
from tests.penstock_api.pages.test_page import Found, look_from_all_sides
from tests.penstock_api.routes.test_second_factor import code_of
from tests.penstock_api.routes.test_users import PASSWORD
from tests.penstock_api.serving import serving


@pytest.fixture
async def address(api: Api) -> AsyncIterator[str]:
    await people.create(api.house.session, "ada", PASSWORD, ["operator"], ["acme"], by="test")
    async with serving(api.app) as address:
        yield address
    for table in ("person", "login_failure", "secret"):
        await api.house.rows(f"delete from {table}")


async def log_in(page: Page, address: str) -> None:
    await page.goto(f"{address}/sign-in?then=/account")
    await page.get_by_label("Name").fill("ada")
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.locator("form", has=page.locator("#password")).get_by_role("button").click()


async def test_account_is_sound_and_leads_through_a_second_factor(
    browser: Browser, address: str, pictures: Path | None
) -> None:
    found = Found()
    other, context = await browser.new_context(), await browser.new_context()
    page = await context.new_page()
    await log_in(await other.new_page(), address)
    await log_in(page, address)
    await expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    await page.get_by_text("Change password …").click()
    await look_from_all_sides(page, "account-person", found, pictures)
    await page.get_by_label("Current password").last.fill(PASSWORD)
    await page.get_by_role("button", name="Set up the second factor").click()
    secret = await page.locator("dl.facts code").inner_text()
    await look_from_all_sides(page, "account-totp", found, pictures)
    now = time.time()
    await page.get_by_label("Code").fill(code_of(secret, now - 30))
    await page.get_by_role("button", name="Turn on the second factor").click()
    await expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    recovery = await page.locator("ul.list code").first.inner_text()
    await look_from_all_sides(page, "account-recovery-codes", found, pictures)
    await page.get_by_role("link", name="I have stored them").click()
    await expect(page.get_by_text("You have 10 unused recovery codes.")).to_be_visible()
    if await (fold := page.locator("button.fold")).is_visible():  # the last look was at a narrow window
        await fold.click()
    await page.get_by_role("button", name="Sign out").click()
    await log_in(page, address)
    await page.get_by_label("Code from your authenticator app").fill(recovery)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_text("You have 9 unused recovery codes.")).to_be_visible()
    await context.close()
    await other.close()
    assert not found.severe, found.severe
    assert not found.across, f"wider than the window: {found.across}"


async def test_session_is_ended_by_its_button(browser: Browser, address: str) -> None:
    other, context = await browser.new_context(), await browser.new_context()
    page, ended = await context.new_page(), await other.new_page()
    await log_in(ended, address)
    await log_in(page, address)
    await expect(page.locator("tr[data-row]")).to_have_count(2)
    await page.get_by_role("button", name="End Chrome on Linux from 127.0.0.1").click()
    await expect(page.locator("tr[data-row]")).to_have_count(1)
    await ended.goto(f"{address}/account")
    await expect(ended).to_have_url(f"{address}/sign-in?then=%2Faccount")
    await context.close()
    await other.close()
