"""The actions of people on pages, in a real browser: look on while things change, start, answer, cancel, by the many too."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import orjson
import pytest
from playwright.async_api import Browser, Page, expect

from penstock.language.workflows import from_yaml
from penstock.operate.access import create_token
from penstock.operate.durable_steps import TIMED_OUT
from penstock.store.access import audit
from penstock_api.app import make_app
from tests.penstock.operate import deadlines
from tests.penstock_api.pages import depot
from tests.penstock_api.pages.conftest import Site
from tests.penstock_api.serving import serving

VAN = from_yaml("""
workflow: depot.van
parameters: {order: {type: integer, required: true}, ok: {type: boolean, default: true}}
tasks:
  check: {action: depot.check, input: {order: "{{ parameters.order }}"}}
  drive: {action: depot.drive, needs: [check], input: {order: 1, ok: "{{ parameters.ok }}"}}
""")
DOCK = from_yaml("""
workflow: depot.dock
tasks:
  approve: {inquiry: {prompt: "May it dock?", schema: {type: boolean}}}
  unload: {action: depot.weigh, needs: [approve], input: {parcel: 1}}
""")
HARBOUR = from_yaml("""
workflow: depot.harbour
tasks:
  dock: {workflow: depot.dock}
""")
HIDE = """
Object.defineProperty(document, "hidden", { configurable: true, get: () => HIDDEN });
document.dispatchEvent(new Event("visibilitychange"));
"""


@pytest.fixture
async def page(browser: Browser, site: Site) -> AsyncIterator[Page]:
    context = await browser.new_context(viewport={"width": 1280, "height": 900}, base_url=site.address)
    yield await context.new_page()
    await context.close()


def shown(page: Page) -> UUID:
    return UUID(page.url.rpartition("/")[2])


async def test_a_list_shows_an_execution_that_starts_while_it_is_open(page: Page, site: Site) -> None:
    await page.goto("/executions?find=depot.weigh")
    await expect(page.locator("[data-pulse]")).to_have_text("live")
    id = await site.house.client.start("depot.weigh", {"parcel": 8})
    await expect(page.locator(f'a[href="/executions/{id}"]')).to_be_visible()
    await expect(page.locator("tr", has=page.locator(f'a[href="/executions/{id}"]'))).to_contain_text(
        "completed"
    )


async def test_an_action_is_started_with_its_form_and_followed_to_its_end(page: Page, site: Site) -> None:
    await page.goto("/actions/depot.check")
    await page.get_by_label("parts").fill("nothing that is JSON")
    await page.get_by_label("order").fill("5")
    await page.get_by_role("button", name="Start").click()
    await expect(page.locator("form.start .problem")).to_contain_text("parts is not JSON")
    await page.get_by_label("parts").fill('["lid", "box"]')
    await page.get_by_label("how").select_option(label="by rail")
    await page.get_by_role("button", name="Start").click()
    await page.wait_for_url("**/executions/*-*")
    await expect(page.locator("#why .status")).to_have_text("completed")
    await expect(page.locator("[data-log]")).to_contain_text("order 5: a few")
    found = await site.house.client.result(shown(page), timeout=10)
    assert found == {"order": 5, "words": "a few"}


async def test_a_refusal_of_the_api_is_shown_in_the_form(page: Page) -> None:
    await page.goto("/actions/depot.truck")
    await page.get_by_text("Tenant, delay, priority, debounce").click()
    await page.get_by_label("order").fill("1")
    await page.get_by_label("Tenant").fill("no::tenant")
    await page.get_by_role("button", name="Start").click()
    await expect(page.locator("form.start .problem")).to_contain_text("Tenant should match")


async def test_starts_of_the_form_join_a_burst(page: Page, site: Site) -> None:
    ids = set()
    for order in ("21", "22"):
        await page.goto("/actions/depot.truck")
        await page.get_by_text("Tenant, delay, priority, debounce").click()
        await page.get_by_label("order").fill(order)
        await page.get_by_label("Debounce", exact=True).fill("1h")
        await page.get_by_label("Debounce key").fill("trucks")
        await page.get_by_label("Maximum debounce wait").fill("2h")
        await page.get_by_role("button", name="Start").click()
        await page.wait_for_url("**/executions/*-*")
        ids.add(shown(page))
    [id] = ids
    await expect(page.locator("#why")).to_contain_text("So far, 2 requests share this execution.")
    assert '"order": 22' in str((await site.house.client.get(id)).params)
    await site.house.client.cancel(id)


async def test_an_inquiry_is_answered_with_its_form(page: Page, site: Site) -> None:
    id = await site.house.client.start("depot.confirm")
    await site.house.until("select 1 from inquiry where execution_id = $1", id)
    await page.goto("/inquiries")
    ask = page.locator(f"#ask-{id}")
    await ask.get_by_label("by").fill("noon")
    await ask.get_by_role("button", name="leave: yes").click()
    answer = await site.house.client.result(id, timeout=10)
    assert answer == {"leave": True, "by": "noon"}
    await expect(page.locator(f"#ask-{id}")).to_have_count(0)


async def test_question_of_paused_workflow_is_answered_and_acted_on_after_resume(
    page: Page, site: Site, pictures: Path | None
) -> None:
    client = site.house.client
    await site.house.apply(DOCK)
    id = await client.start("depot.dock")
    await site.house.until(
        "select 1 from inquiry i join execution e on e.id = i.execution_id where e.parent = $1", id
    )
    await client.command(id, "pause", by="ada", reason="the dock is wet")
    await site.house.until("select 1 from paused_workflow where execution_id = $1", id)
    await page.goto("/executions?waits_for_answer=true")
    row = page.locator("tr", has=page.locator(f'a[href="/executions/{id}"]'))
    await expect(row).to_contain_text("is paused, and waits for an answer: May it dock?")
    await expect(row.locator(".status")).to_have_text(["running", "paused"])
    await page.goto("/inquiries")
    asked = page.locator("section.ask", has_text="May it dock?")
    await expect(asked).to_contain_text("The tasks after the question start when the workflow is resumed")
    await page.goto(f"/executions/{id}")
    await expect(page.locator("#why")).to_contain_text("Is paused by ada (the dock is wet).")
    await expect(page.locator("#why .status")).to_have_text(["running", "paused"])
    await expect(page.locator("#why")).to_contain_text("A task waits for an answer: May it dock?")
    ask = page.locator("#ask")
    await expect(ask).to_contain_text("The tasks after the question start when the workflow is resumed")
    await expect(ask.locator(".status")).to_have_text("paused")
    if pictures is not None:
        await page.screenshot(path=pictures / "paused_question.png", full_page=True)
    await ask.get_by_role("button", name="Approve").click()
    await expect(ask).to_have_count(0)
    await site.house.until(
        "select 1 from inquiry i join execution e on e.id = i.execution_id where e.parent = $1 and i.status = 'responded'",
        id,
    )
    await expect(page.locator("#why")).to_contain_text(
        "These tasks start when the workflow is resumed: unload."
    )
    await page.goto("/executions")
    await expect(row).to_contain_text("is paused")
    await page.goto(f"/executions/{id}")
    assert not await site.house.rows("select 1 from execution where parent = $1 and task = 'unload'", id)
    await page.get_by_text("Resume …").click()
    await page.get_by_role("button", name="Resume the workflow").click()
    await expect(page.locator("#why .status").first).to_have_text("completed")


async def test_a_running_execution_is_cancelled_with_actor_and_reason(page: Page, site: Site) -> None:
    id = await site.house.client.start("depot.load", {"order": 11}, delay=600)
    await page.goto(f"/executions/{id}")
    await page.get_by_text("Cancel …").click()
    await page.locator("#do-cancel").get_by_label("Reason").fill("the road is flooded")
    await page.get_by_role("button", name="Cancel the execution").click()
    await expect(page.locator("#why .status")).to_have_text("cancelled")
    await expect(page.get_by_text("Rerun …", exact=True)).to_be_visible()
    [noted] = [
        one
        for one in await audit.newest(site.house.session, limit=20)
        if one.target == f"/api/v1/executions/{id}/cancel"
    ]
    assert noted.reason == "the road is flooded"


async def test_waiting_execution_is_rescheduled_and_starts(page: Page, site: Site) -> None:
    id = await site.house.client.start("depot.weigh", {"parcel": 8}, delay=600)
    await page.goto(f"/executions/{id}")
    await expect(page.locator("#why")).to_contain_text("Is due to start in")
    await page.get_by_text("Priority …").click()
    await page.locator("#do-priority").get_by_label("Priority").fill("7")
    await page.get_by_role("button", name="Set the priority").click()
    await site.house.until("select 1 from execution where id = $1 and priority = 7", id)
    await page.get_by_text("Reschedule …").click()
    await page.locator("#do-reschedule").get_by_label("Start").fill("2020-01-01T09:00")
    await page.get_by_role("button", name="Reschedule the start").click()
    await expect(page.locator("#why .status")).to_have_text("completed")


async def test_run_is_repeated_with_other_parameters(page: Page, site: Site) -> None:
    """A field without a change is not sent, so a secret stays. An emptied field is left out."""
    params = {"order": 5, "words": "many", "pin": "1234", "parts": ["lid"], "fragile": True}
    id = await site.house.client.start("depot.check", params)
    await site.house.client.result(id, timeout=10)
    await page.goto(f"/executions/{id}")
    await page.get_by_text("Rerun …", exact=True).click()
    form = page.locator("#do-rerun")
    await expect(form.get_by_label("order")).to_have_value("5")
    await expect(form.get_by_label("pin")).to_have_value("")
    await form.get_by_label("order").fill("6")
    await form.get_by_label("words").fill("")
    await form.get_by_label("parts").fill('["lid", "box"]')
    await form.get_by_role("button", name="Rerun").click()
    await page.wait_for_url(lambda url: not url.endswith(str(id)))
    again = await site.house.client.get(shown(page))
    expected = {"order": 6, "pin": "1234", "parts": ["lid", "box"], "fragile": True}
    assert orjson.loads(again.params or "null") == expected


async def test_refused_change_names_the_task_that_read_it(page: Page, site: Site) -> None:
    await site.house.apply(VAN)
    id = await site.house.client.start("depot.van", {"order": 5, "ok": False})
    await site.house.until("select 1 from execution where id = $1 and status = 'failed'", id)
    await page.goto(f"/executions/{id}")
    await expect(page.locator("#why")).to_contain_text("drive")
    await expect(page.locator("#why")).to_contain_text("the road is closed")
    await page.get_by_text("Rerun …", exact=True).click()
    form = page.locator("#do-rerun")
    await form.get_by_label("Reuse").select_option("true")
    await form.get_by_label("order").fill("6")
    await form.get_by_role("button", name="Rerun").click()
    await expect(form.locator(".problem")).to_contain_text("task check read order")
    await form.get_by_label("order").fill("5")
    await form.get_by_label("ok").select_option(label="yes")
    await form.get_by_role("button", name="Rerun").click()
    await page.wait_for_url(lambda url: not url.endswith(str(id)))
    await expect(page.locator("#why .status")).to_have_text("completed")
    rows = await site.house.rows("select task from execution where parent = $1", shown(page))
    assert {row["task"] for row in rows} == {"drive"}


async def test_a_signalled_durable_function_goes_on_in_an_open_page(
    page: Page, site: Site, pictures: Path | None
) -> None:
    id = await site.house.client.start("depot.pack_up", {"parcels": 1})
    await page.goto(f"/executions/{id}")
    steps = page.locator("#steps tbody tr")
    await expect(steps.filter(has_text="seal")).to_contain_text("completed")
    awaited = steps.filter(has_text="fetched")
    await expect(awaited.locator(".status")).to_have_text("waiting")
    await expect(awaited).to_contain_text("waits for the signal fetched (for ")
    await expect(page.locator("#steps .gantt .g-row", has_text="fetched").locator(".held")).to_have_count(1)
    if pictures is not None:
        await page.screenshot(path=pictures / "awaited_signal.png", full_page=True)
    await expect(page.locator("#steps .gantt")).to_contain_text("weigh")
    await page.get_by_text("Signal …").click()
    await page.get_by_label("Name of the signal").fill("fetched")
    await page.get_by_label("Value, as JSON").fill('"at noon"')
    await page.get_by_role("button", name="Send the signal").click()
    await expect(page.locator("#outcome")).to_contain_text("at noon")
    await expect(steps.filter(has_text="fetched")).to_contain_text("signal")


async def test_passed_deadlines_are_not_red(page: Page, site: Site, pictures: Path | None) -> None:
    id = await site.house.client.start("deadlines.waits")
    await site.house.client.result(id, timeout=30)
    await page.goto(f"/executions/{id}")
    rows = page.locator("#steps tbody tr")
    await expect(rows).to_have_count(len(deadlines.STATUSES))
    for label, status in deadlines.STATUSES.items():
        is_planned = label in deadlines.PLANNED
        shown = rows.filter(has=page.locator("td:first-child", has_text=re.compile(f"(^|/){label}$")))
        await expect(shown.locator(".status")).to_have_text(TIMED_OUT if is_planned else status)
        is_red = not is_planned and status in ("failed", "timeout")
        red = shown.locator(".s-failed, .s-timeout, .s-abandoned")
        await expect(red).to_have_count(1 if is_red else 0)
    await expect(page.locator("#steps")).to_contain_text("the step is broken")
    await expect(page.locator("#steps")).not_to_contain_text("nothing was told in time")
    drawn = page.locator("#steps .gantt")
    await expect(drawn.locator(".status", has_text=TIMED_OUT)).to_have_count(len(deadlines.PLANNED))
    await expect(drawn.locator(".s-failed, .s-timeout")).to_have_count(2)
    if pictures is not None:
        await page.screenshot(path=pictures / "passed_deadlines.png", full_page=True)


async def test_parts_come_and_go_in_an_open_page(page: Page, site: Site) -> None:
    first = await site.house.client.start("depot.enter", {"first": True})
    await site.house.until("select 1 from execution where id = $1 and status = 'running'", first)
    id = await site.house.client.start("depot.enter")
    await page.goto(f"/executions/{id}")
    await expect(page.locator("#ask")).to_have_count(0)
    await expect(page.locator("#attempts")).to_have_count(0)
    depot.LET_IN.set()
    await expect(page.locator("#ask h2")).to_have_text("When?")
    await expect(page.locator("#attempts tbody tr")).to_have_count(1)
    order = await page.locator("main > [id]").evaluate_all("all => all.map(one => one.id)")
    assert order == ["ask", "given", "attempts", "history"]
    await site.house.client.answer(id, {"leave": True}, by="somebody")
    await expect(page.locator("#ask")).to_have_count(0)


async def test_a_sleep_is_skipped_and_a_failed_run_goes_on_from_a_step(page: Page, site: Site) -> None:
    await page.goto(f"/executions/{site.ids['sleeps']}")
    await page.get_by_text("Skip a step …").click()
    await page.locator("#skip-step").select_option("sleep")
    await page.get_by_role("button", name="Skip the step").click()
    await expect(page.locator("#steps tbody tr", has_text="sleep")).to_contain_text("completed")
    await expect(page.locator("#why .status")).to_have_text("waiting")
    await page.goto(f"/executions/{site.ids['broke']}")
    await page.get_by_text("Rerun from a step …").click()
    await page.locator("#from-step").select_option("pack:2")
    await page.locator("#do-from-step").get_by_role("button", name="Rerun").click()
    await page.wait_for_url(lambda url: not url.endswith(str(site.ids["broke"])))
    await expect(page.locator("#why")).to_contain_text("failed")
    kept = "select name, ordinal from step where execution_id = $1 and attempt = 0 and kind = 'step'"
    assert [tuple(row) for row in await site.house.rows(kept, shown(page))] == [("pack", 1)]


async def test_many_are_counted_before_they_are_cancelled(page: Page, site: Site) -> None:
    ids = [
        await site.house.client.start("depot.drive", {"order": n}, delay=600, tenant="bulk") for n in range(3)
    ]
    before = len(await audit.newest(site.house.session, limit=1000))
    await page.goto("/executions?tenant=bulk&find=depot.drive")
    await page.get_by_role("button", name="Cancel …").click()
    await expect(page.locator("main .warn")).to_have_text(
        "If you confirm, 3 executions will be asked to stop."
    )
    assert await site.house.rows("select 1 from execution where id = $1 and status = 'requested'", ids[0])
    assert len(await audit.newest(site.house.session, limit=1000)) == before
    await page.get_by_role("button", name="Cancel: 3 executions").click()
    await expect(page.locator("main .calm")).to_have_text("3 executions were asked to stop.")
    await expect(page.get_by_role("link", name="Back to the list")).to_be_visible()
    left = await site.house.rows("select 1 from execution where id = any($1) and status <> 'cancelled'", ids)
    assert not left
    assert len(await audit.newest(site.house.session, limit=1000)) == before + 1


async def test_a_hidden_page_gives_its_connection_back(page: Page, site: Site) -> None:
    watching = site.backend.changes.watching
    await page.goto(f"/executions/{site.ids['tour']}")
    async with asyncio.timeout(20):
        while watching() != 1:
            await asyncio.sleep(0.02)
    await page.evaluate(HIDE.replace("HIDDEN", "true"))
    await expect(page.locator("[data-pulse]")).to_have_text("paused")
    async with asyncio.timeout(20):
        while watching():
            await asyncio.sleep(0.02)
    await page.evaluate(HIDE.replace("HIDDEN", "false"))
    await expect(page.locator("[data-pulse]")).to_have_text("live")
    async with asyncio.timeout(20):
        while not watching():
            await asyncio.sleep(0.02)


async def test_the_keyboard_goes_through_menu_and_lists(page: Page) -> None:
    await page.goto("/")
    await page.keyboard.press("g")
    await page.keyboard.press("e")
    await page.wait_for_url("**/executions")
    await page.keyboard.press("/")
    await expect(page.get_by_label("Find executions")).to_be_focused()
    await page.keyboard.press("Escape")
    await page.locator("main").focus()
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/executions/*-*")


async def test_a_browser_that_signs_in_stays_signed_in(browser: Browser, site: Site) -> None:
    _, secret = await create_token(site.house.session, "visitor", ["viewer"], by="test")
    settings = site.house.settings(api_access="token")
    backend = replace(site.backend, settings=settings)
    async with serving(make_app(backend)) as address:
        context = await browser.new_context(base_url=address)
        page = await context.new_page()
        await page.goto("/executions?children=true")
        await page.get_by_text("With a token").click()
        await page.get_by_label("Token").fill(secret)
        await page.get_by_role("button", name="Sign in with token").click()
        await page.wait_for_url("**/executions?children=true")
        await expect(page.locator("[data-pulse]")).to_have_text("live")
        assert await page.evaluate("document.cookie") == ""
        await page.get_by_role("button", name="Sign out").click()
        await page.wait_for_url("**/sign-in")
        await context.close()


OVERFLOW = """
() => [...document.querySelectorAll(".graph .box")].flatMap((box) => {
    const right = box.querySelector("rect").getBoundingClientRect().right;
    const texts = [...box.querySelectorAll("text, span")];
    return texts.filter((text) => text.getBoundingClientRect().right > right).map((text) => text.textContent);
})
"""
LONG = from_yaml("""
workflow: depot.long_names
tasks:
  a_name_that_is_much_longer_than_its_box: {action: depot.load, input: {order: 1}}
  items_of_a_parcel: {action: depot.weigh, with_items: "{{ range(20) | list }}", input: {parcel: "{{ item }}"}}
""")


async def test_texts_end_at_the_border_of_their_box(page: Page, site: Site) -> None:
    client = site.house.client
    await site.house.apply(LONG)
    id = await client.start("depot.long_names")
    await page.goto(f"/executions/{id}")
    await expect(page.locator(".graph .box")).to_have_count(2)
    assert await page.evaluate(OVERFLOW) == []
    await expect(page.locator(".graph .does", has_text="×20")).to_be_visible()
    await client.cancel(id, reason="the test is over")


async def test_workflow_inside_a_paused_run_is_drawn_as_paused(
    browser: Browser, site: Site, pictures: Path | None
) -> None:
    client = site.house.client
    await site.house.apply(DOCK, HARBOUR)
    id = await client.start("depot.harbour")
    await site.house.until(
        "select 1 from inquiry i join execution e on e.id = i.execution_id join execution p on p.id = e.parent "
        "where p.parent = $1",
        id,
    )
    await client.command(id, "pause", by="ada", reason="fog")
    await site.house.until("select 1 from paused_workflow having count(*) >= 2")
    for width in (1280, 390):
        context = await browser.new_context(viewport={"width": width, "height": 900}, base_url=site.address)
        page = await context.new_page()
        await page.goto(f"/executions/{id}")
        box = page.locator("#graph .box", has_text="dock")
        await expect(box).to_have_class("box s-paused critical")
        await expect(box).to_contain_text("paused")
        row = page.locator("#gantt .g-row:not(.axis)").first
        await expect(row.locator(".status")).to_have_text("paused")
        assert await row.locator("rect.ran").count() == 0
        assert await row.locator("rect.held").count() >= 1
        await expect(page.locator("#graph h2")).to_contain_text("1 paused")
        if pictures is not None:
            await page.screenshot(path=pictures / f"paused_inside_{width}.png", full_page=True)
        await context.close()
    await client.cancel(id)
