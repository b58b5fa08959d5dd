"""Each page in a real browser, with data in it: wide and narrow, light and dark."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from playwright.async_api import Browser, Page

from penstock.language.terms.visible_text import BIDI
from tests.penstock_api.pages.conftest import Site
from tests.penstock_api.pages.depot import SHOWN

PAGES = {
    "overview": "/",
    "executions": "/executions",
    "executions-picked": "/executions?status=failed&status=timeout&children=true",
    "executions-none": "/executions?find=nothing.like_it",
    "executions-view": "/executions?view={view}",
    "executions-view-edited": "/executions?status=failed&since=24h&edits={view}",
    "executions-view-stale": "/executions?view={stale}",
    "run-good": "/executions/{good}",
    "run-bad": "/executions/{bad}",
    "run-evil": "/executions/{evil}",
    "run-failed": "/executions/{failed}",
    "run-asks": "/executions/{asks}",
    "run-tour": "/executions/{tour}",
    "run-wide": "/executions/{wide}",
    "run-queued": "/executions/{queued}",
    "run-sleeps": "/executions/{sleeps}",
    "run-broke": "/executions/{broke}",
    "actions": "/actions",
    "action": "/actions/depot.check",
    "workflow": "/actions/depot.truck",
    "events": "/events?publish=depot.placed",
    "event": "/events/{event}",
    "enforcements": "/enforcements",
    "rules": "/rules?rule=depot.broken",
    "rule": "/rules/depot.large",
    "rule-unmet": "/rules/depot.empty",
    "rule-new": "/rules/new?change=depot.broken",
    "rule-tried": "/rules/new?ref=depot.huge&trigger=depot.placed&when=payload.order+%3E+100&action=depot.check"
    "&params=%7B%22order%22%3A+%22%7B%7Bpayload.order%7D%7D%22%7D",
    "schedules": "/schedules",
    "schedule": "/schedules/depot.nightly",
    "schedule-new": "/schedules/new?ref=depot.weekly&kind=cron&expression=0+2+*+*+1&timezone=Europe/Paris&action=depot.confirm",
    "schedule-changed": "/schedules/new?change=depot.hourly",
    "limits": "/limits",
    "limit": "/limits/depot.gate",
    "holds": "/holds",
    "inquiries": "/inquiries",
    "dead-letters": "/dead-letters",
    "dead-letter": "/dead-letters/{letter}",
    "workers": "/workers",
    "users": "/users",
    "tokens": "/tokens",
    "secrets": "/secrets",
    "webhooks": "/webhooks?change=parcels",
    "subscriptions": "/subscriptions?change=shop",
    "audit": "/audit",
    "audit-picked": "/audit?outcome=done&operation=penstock&tenant=public",
    "account": "/account",
    "sign-in": "/sign-in",
    "sign-in-code": "/sign-in/code",
    "docs": "/docs",
    "nowhere": "/nowhere",
    "error": "/executions/00000000-0000-7000-8000-000000000000",
}
VIEWS = {
    "wide-light": (1280, 900, "light"),
    "wide-dark": (1280, 900, "dark"),
    "narrow-dark": (390, 844, "dark"),
    "narrow-light": (390, 844, "light"),
}
LOOKED_AT = ("wide-light", "narrow-dark")
"""Where axe looks, if nobody wants pictures."""
SEVERE = ("serious", "critical")
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"]}
"""What of a page's soundness the window and the colours can change."""


@asynccontextmanager
async def looking(browser: Browser, site: Site) -> AsyncIterator[Page]:
    """Open a page, and listen to its console and requests. Raises AssertionError for a message that should not be
    there."""
    amiss: list[str] = []
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    page = await context.new_page()
    here = urlsplit(site.address).netloc
    page.on("console", lambda m: amiss.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: amiss.append(str(error)))
    page.on("request", lambda r: amiss.append(r.url) if urlsplit(r.url).netloc not in (here, "") else None)
    try:
        yield page
    finally:
        await context.close()
    # The browser reports a refusal in the console, too.
    assert not [message for message in amiss if "responded with a status of 4" not in message], amiss


@dataclass
class Found:
    """The findings on the pages. `severe`: those of axe, by page and view. `across`: pages that are wider than the window,
    and by how much. `shown`: the pages that show a user's text. `hit`: those that ran it. `turned`: those on which a text
    can change the order of what is read."""

    severe: dict[str, list[str]] = field(default_factory=dict)
    across: dict[str, int] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)
    hit: set[str] = field(default_factory=set)
    turned: set[str] = field(default_factory=set)


@pytest.fixture(scope="module")
async def found(browser: Browser, site: Site, pictures: Path | None) -> Found:
    """Each page is opened once: that takes a browser a quarter of a second."""
    found = Found()
    async with looking(browser, site) as page:
        for name, path in PAGES.items():
            await page.goto(site.address + path.format(**site.ids), wait_until="load")
            await look_for_texts(page, name, found)
            await look_from_all_sides(page, name, found, pictures)
    return found


async def look_for_texts(page: Page, name: str, found: Found) -> None:
    if name == "run-evil":
        await page.locator("[data-log]", has_text=SHOWN).wait_for()
    if SHOWN in await page.evaluate("document.body.textContent"):
        found.shown.add(name)
    if await page.locator("img[src=x]").count() or await page.evaluate("window.hit") is not None:
        found.hit.add(name)
    if re.search(f"[{BIDI}]", await page.content()):
        found.turned.add(name)


async def look_from_all_sides(page: Page, name: str, found: Found, pictures: Path | None) -> None:
    for view, (width, height, scheme) in VIEWS.items():
        await page.set_viewport_size({"width": width, "height": height})
        await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        if pictures is not None:
            await page.screenshot(path=pictures / f"{name}-{view}.png", full_page=True)
        if pictures is None and view not in LOOKED_AT:
            pass  # a second for each page, for what two of the others would have shown
        elif severe := await severe_findings(page, whole=view == "wide-light"):
            found.severe[f"{name}-{view}"] = severe
        across = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if across > 0:
            found.across[f"{name}-{view}"] = across


async def severe_findings(page: Page, *, whole: bool) -> list[str]:
    """Return the findings of axe that would keep a person from using it."""
    if await page.evaluate("typeof axe") == "undefined":
        await page.evaluate(AXE_FILE_PATH.read_text())
    # Only the first node of each violation: all nodes together are as long as the page.
    violations: list[dict[str, str]] = await page.evaluate(
        """async (options) => (await axe.run(document, options)).violations.map(
            ({ id, impact, nodes }) => ({ id, impact, html: nodes[0].html, says: nodes[0].failureSummary }))""",
        {"resultTypes": ["violations"], **({} if whole else COLOURS)},
    )
    return [
        f"{one['id']}: {one['html'][:200]} {one['says']}" for one in violations if one["impact"] in SEVERE
    ]


async def test_pages_are_sound_wide_and_narrow_light_and_dark(found: Found) -> None:
    assert not found.severe, found.severe
    assert not found.across, f"wider than the window: {found.across}"


async def test_texts_of_users_are_shown_and_never_run(found: Found) -> None:
    assert not found.hit, f"they ran somebody's script: {found.hit}"
    shown = {
        "run-evil",
        "run-failed",
        "run-asks",
        "action",
        "actions",
        "events",
        "event",
        "rules",
        "schedule",
    }
    assert shown | {"inquiries", "dead-letters", "dead-letter"} <= found.shown, found.shown


async def test_no_text_of_a_user_turns_the_order_of_a_page(found: Found) -> None:
    assert not found.turned, found.turned


async def test_narrow_page_shows_its_menu_on_demand(browser: Browser, site: Site) -> None:
    async with looking(browser, site) as page:
        await page.set_viewport_size({"width": 390, "height": 844})
        await page.goto(site.address + "/")
        header, menu = page.locator("header.side"), page.get_by_role("navigation", name="Pages", exact=True)
        box = await header.bounding_box()
        assert box is not None
        assert box["height"] < 80
        assert not await menu.is_visible()
        await page.keyboard.press("/")
        assert await page.evaluate("document.activeElement.name") == "find"
        await page.get_by_role("button", name="Menu").press("Enter")
        assert await menu.is_visible()
        assert not await severe_findings(page, whole=True)
        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        await page.keyboard.press("Escape")
        assert not await menu.is_visible()


CORNERS = """form => {
    const { left, top, right, bottom } = form.getBoundingClientRect();
    const corners = [[left + 12, top + 4], [right - 12, top + 4], [left + 12, bottom - 4], [right - 12, bottom - 4]];
    return corners.map(([x, y]) => form.contains(document.elementFromPoint(x, y)));
}"""
"""Whether the form is what a person sees at each of its corners."""
TABLES = ("/users", "/tokens", "/secrets", "/webhooks", "/subscriptions")
"""The pages whose tables have forms in their rows."""


CUT = """
() => {
  for (const time of document.querySelectorAll(".halves td time")) time.textContent = "59 min ago";
  for (const cell of document.querySelectorAll(".halves td[data-name=duration]")) cell.textContent = "59 min 59 s";
  for (const name of document.querySelectorAll(".halves td.wide a")) name.textContent = "depot.order_with_approval_of_a_person";
  const tables = [...document.querySelectorAll(".scroll")];
  return tables.map(one => one.scrollWidth - one.clientWidth).filter(beyond => beyond > 0);
}
"""
"""The pixels by which tables are wider than their places, with long names and durations in those of the overview."""


@pytest.mark.parametrize("width", [1600, 1350, 1300, 1280, 1130])
async def test_overview_shows_each_column_of_its_tables(browser: Browser, site: Site, width: int) -> None:
    async with looking(browser, site) as page:
        await page.set_viewport_size({"width": width, "height": 900})
        await page.goto(site.address)
        await page.locator("#newest table").wait_for()
        cut = await page.evaluate(CUT)
    assert cut == []


@pytest.mark.parametrize("width", [1280, 900, 390])
async def test_forms_of_table_rows_are_shown_whole(browser: Browser, site: Site, width: int) -> None:
    cut: list[str] = []
    opened = 0
    async with looking(browser, site) as page:
        await page.set_viewport_size({"width": width, "height": 900})
        for path in TABLES:
            await page.goto(site.address + path)
            for summary in await page.locator(".scroll details.action > summary").all():
                await summary.click()
                form = summary.locator("+ form")
                await form.evaluate("form => scrollBy(0, form.getBoundingClientRect().top - 100)")
                name = f"{path}: {await summary.inner_text()}"
                cut += [] if await form.evaluate(CORNERS) == [True] * 4 else [name]
                across = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
                cut += [f"{name} is wider than the window"] if across > 0 else []
                await page.keyboard.press("Escape")
                opened += 1
    assert opened >= 8
    assert not cut, cut


async def test_buttons_of_table_rows_fit_a_narrow_window(browser: Browser, site: Site) -> None:
    async with looking(browser, site) as page:
        await page.set_viewport_size({"width": 390, "height": 844})
        for path in TABLES:
            await page.goto(site.address + path)
            widths = await page.locator(".scroll").evaluate_all(
                "all => all.map(e => e.scrollWidth - e.clientWidth)"
            )
            assert widths
            assert max(widths) <= 1, path


async def mark_of(page: Page, selector: str, pseudo: str) -> str:
    """Return the text that the style sheet adds before or after the element."""
    element = page.locator(selector).first
    return str(await element.evaluate("(e, pseudo) => getComputedStyle(e, pseudo).content", pseudo))


async def test_required_fields_and_folds_have_visible_marks(browser: Browser, site: Site) -> None:
    async with looking(browser, site) as page:
        await page.goto(site.address + "/webhooks")
        assert "required" in await mark_of(page, "#put .field:has(:required) > label", "::after")
        assert await mark_of(page, "#put .field:not(:has(:required)) > label", "::after") == "none"
        assert "▸" in await mark_of(page, "#put > summary", "::before")
        await page.locator("#put > summary").click()
        assert "▾" in await mark_of(page, "#put > summary", "::before")
        await page.goto(site.address + "/users")
        assert "required" in await mark_of(page, "#create .field:has(.chips) > .label", "::after")
        await page.goto(site.address + "/dead-letters")
        assert "▸" in await mark_of(page, "#letters > summary", "::before")
        await page.goto(site.address + "/sign-in")
        assert await mark_of(page, ".field > label", "::after") == "none"


async def test_small_graph_is_shown_whole_in_a_narrow_window(browser: Browser, site: Site) -> None:
    async with looking(browser, site) as page:
        await page.set_viewport_size({"width": 390, "height": 844})
        await page.goto(site.address + f"/executions/{site.ids['good']}")
        frame = page.locator(".graph").first
        assert await frame.evaluate("frame => frame.scrollWidth - frame.clientWidth") <= 1


async def test_search_by_title_offers_no_change_of_many(site: Site) -> None:
    async with httpx.AsyncClient(base_url=site.address) as client:
        text = (await client.get("/executions", params={"find": "TRIP "})).text
    assert "with this text in the title" in text
    assert "trip " in text
    assert "/executions/many" not in text
