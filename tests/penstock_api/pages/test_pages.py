"""Each page in a real browser, with data in it: wide and narrow, light and dark."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page

from tests.penstock_api.pages.conftest import Site
from tests.penstock_api.pages.depot import SHOWN

PAGES = {
    "overview": "/",
    "executions": "/executions",
    "executions-picked": "/executions?status=failed&status=timeout&children=true",
    "executions-none": "/executions?find=nothing.like_it",
    "run-good": "/executions/{good}",
    "run-bad": "/executions/{bad}",
    "run-evil": "/executions/{evil}",
    "run-failed": "/executions/{failed}",
    "run-asks": "/executions/{asks}",
    "run-tour": "/executions/{tour}",
    "run-wide": "/executions/{wide}",
    "run-queued": "/executions/{queued}",
    "actions": "/actions",
    "action": "/actions/depot.check",
    "workflow": "/actions/depot.truck",
    "events": "/events?publish=depot.placed",
    "event": "/events/{event}",
    "rules": "/rules?rule=depot.broken",
    "schedules": "/schedules",
    "schedule": "/schedules/depot.nightly",
    "limits": "/limits",
    "limit": "/limits/depot.gate",
    "inquiries": "/inquiries",
    "dead-letters": "/dead-letters",
    "dead-letter": "/dead-letters/{letter}",
    "workers": "/workers",
    "sign-in": "/sign-in",
    "error": "/executions/00000000-0000-7000-8000-000000000000",
}
SIZES = {"wide": (1280, 900), "narrow": (390, 844)}
SEVERE = ("serious", "critical")


@asynccontextmanager
async def looking(browser: Browser, site: Site, *, width: int, height: int, dark: bool) -> AsyncIterator[Page]:
    """A page whose console and requests are listened to. Raises AssertionError for what should not have been there."""
    amiss: list[str] = []
    context = await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    page = await context.new_page()
    here = urlsplit(site.address).netloc
    page.on("console", lambda m: amiss.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: amiss.append(str(error)))
    page.on("request", lambda r: amiss.append(r.url) if urlsplit(r.url).netloc not in (here, "") else None)
    try:
        yield page
    finally:
        await context.close()
    # A page that is not there says so in the console, too.
    assert not [one for one in amiss if "404 (Not Found)" not in one], amiss


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
async def test_pages_are_sound(browser: Browser, site: Site, pictures: Path, size: str, dark: bool) -> None:
    width, height = SIZES[size]
    found = {}
    async with looking(browser, site, width=width, height=height, dark=dark) as page:
        for name, path in PAGES.items():
            await page.goto(site.address + path.format(**site.ids), wait_until="load")
            await page.screenshot(
                path=pictures / f"{name}-{size}-{'dark' if dark else 'light'}.png", full_page=True
            )
            results = await Axe().run(page)
            severe = [
                f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0].get('failureSummary', '')}"
                for one in results.response["violations"]
                if one["impact"] in SEVERE
            ]
            if severe:
                found[name] = severe
            across = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert across <= 0, f"{name} is {across} px wider than the window"
            assert await page.evaluate("window.hit") is None, f"{name} ran somebody's script"
    assert not found, found


async def test_texts_of_users_are_shown_and_never_run(browser: Browser, site: Site) -> None:
    seen = set()
    async with looking(browser, site, width=1280, height=900, dark=False) as page:
        for name, path in PAGES.items():
            await page.goto(site.address + path.format(**site.ids))
            text = await page.evaluate("document.body.textContent")
            if SHOWN in text:
                seen.add(name)
            assert await page.locator("img[src=x]").count() == 0, name
            assert "49" not in text.split("'")[-1][:2] or "'49" not in text, name
    assert {"run-evil", "run-failed", "action", "event", "dead-letter", "inquiries"} <= seen, seen
