"""A rule is tried on its page: begun with the newest event, or an example; what matches, what does not and why, and with which
parameters it would start its action."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from penstock_api.pages.schema_example import example
from tests.penstock_api.pages.conftest import Site
from tests.penstock_api.pages.depot import SHOWN
from tests.penstock_api.pages.test_page import looking, severe_findings


@pytest.fixture
async def page(browser: Browser, site: Site) -> AsyncIterator[Page]:
    async with looking(browser, site) as found:
        yield found


async def tried(page: Page, payload: str, tenant: str | None = None) -> str:
    await page.get_by_label("Payload").fill(payload)
    if tenant is not None:
        await page.get_by_label("Tenant").fill(tenant)
    await page.get_by_role("button", name="Try it").click()
    return await page.get_by_role("status").first.inner_text()


async def test_a_rule_shows_whether_it_matches_and_its_start(
    page: Page, site: Site, pictures: Path | None
) -> None:
    before = await site.house.rows("select count(*) from event")
    await page.goto(f"{site.address}/rules/depot.large")
    assert '"order"' in await page.get_by_label("Payload").input_value()
    said = await tried(page, '{"order": 102, "note": "<img src=x onerror=window.hit=1>"}')
    assert "matched" in said
    assert '"order": 102' in said
    assert await severe_findings(page, whole=True) == []
    if pictures is not None:
        for width in (1280, 390):
            for scheme in ("light", "dark"):
                await page.set_viewport_size({"width": width, "height": 900})
                await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                await page.screenshot(path=pictures / f"rule-tried-{width}-{scheme}.png", full_page=True)
    assert await page.get_by_label("Tenant").input_value() == "public"
    await page.goto(f"{site.address}/rules/depot.broken")
    assert "failed" in await tried(page, '{"order": 13}')
    said = await tried(page, '{"order": 12}')
    assert "the condition `payload.order == 13` is false" in said
    assert await site.house.rows("select count(*) from event") == before


async def test_secrets_are_masked_and_a_rule_of_one_tenant_says_so(page: Page, site: Site) -> None:
    await page.goto(f"{site.address}/rules/depot.empty")
    await expect(page.get_by_label("Payload")).to_have_value('{\n  "pin": "text"\n}')
    said = await tried(page, '{"pin": "4711"}')
    assert "matched" in said
    assert '"pin": "***"' in said
    assert "4711" not in said
    said = await tried(page, '{"pin": "4711"}', "public")
    assert "the rule is for tenant theirs, and the event is of tenant public" in said


async def test_rule_of_several_events_plays_a_list(page: Page, site: Site) -> None:
    count = await site.house.rows("select count(*) from event")
    await page.goto(f"{site.address}/rules/depot.pair")
    await expect(page.get_by_label("Events with times")).to_have_value(re.compile('"trigger": "depot.empty"'))
    listed = (
        '[{"trigger": "depot.placed", "at": 0, "payload": {"order": 1}},'
        ' {"trigger": "depot.placed", "at": "5s", "payload": {"order": 2}},'
        ' {"trigger": "depot.empty", "at": "9s", "payload": {"pin": "4711"}}]'
    )
    await page.get_by_label("Events with times").fill(listed)
    await page.get_by_role("button", name="Try it").click()
    text = await page.get_by_role("status").last.inner_text()
    assert "Events 0, 2: the rule matches these 2 events together" in text
    assert '"pin": "***"' in text
    assert "Event 1: no match: the rule needs further events within its window" in text
    assert await severe_findings(page, whole=True) == []
    assert await site.house.rows("select count(*) from event") == count


async def test_an_invalid_payload_is_refused_and_stays_in_the_form(site: Site, browser: Browser) -> None:
    context = await browser.new_context(java_script_enabled=False, base_url=site.address)
    page = await context.new_page()
    await page.goto("/rules/depot.large")
    for payload, says in (("{", "the payload is not JSON"), ('{"order": "one"}', "order")):
        await page.get_by_label("Payload").fill(payload)
        await page.get_by_role("button", name="Try it").click()
        await expect(page.get_by_role("alert")).to_contain_text(says)
        await expect(page.get_by_label("Payload")).to_have_value(payload)
    await context.close()


async def test_invalid_list_is_refused_and_stays_in_the_form(site: Site, browser: Browser) -> None:
    context = await browser.new_context(java_script_enabled=False, base_url=site.address)
    page = await context.new_page()
    await page.goto("/rules/depot.pair")
    for wrong, says in (("{", "the list is not JSON"), ("{}", "not a list of events"), ("[7]", "event 0")):
        await page.get_by_label("Events with times").fill(wrong)
        await page.get_by_role("button", name="Try it").click()
        await expect(page.get_by_role("alert")).to_contain_text(says)
        await expect(page.get_by_label("Events with times")).to_have_value(wrong)
    await context.close()


def test_an_example_follows_the_schema_of_each_part() -> None:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 5},
            "how": {"enum": ["by road", "by rail"]},
            "to": {"type": "array", "items": {"anyOf": [{"type": "string", "examples": ["ada"]}]}},
            "note": {"type": ["string", "null"], "default": SHOWN},
            "odd": True,
        },
    }
    made = {"id": 5, "how": "by road", "to": ["ada"], "note": SHOWN, "odd": None}
    assert example(schema) == made
    assert example(None) == {}
