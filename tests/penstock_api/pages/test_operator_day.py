"""A day of an operator, by clicking alone: each test opens the first page once, and from there goes by the links and buttons
that a person sees. What came of it is read from the database."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from penstock.language.loading import load_all
from penstock.store.access import audit
from tests.penstock_api.pages import depot
from tests.penstock_api.pages.conftest import Site
from tests.penstock_api.pages.test_page import looking

RIGHT_OF_NOTE = """() => [...document.querySelectorAll(".g-row")].find((row) => row.textContent.includes("again"))
    .querySelector(".g-note").getBoundingClientRect().right"""
ZONE = "Asia/Kathmandu"
"""A zone whose offset is not a whole number of hours."""


@pytest.fixture
async def page(browser: Browser, site: Site) -> AsyncIterator[Page]:
    async with looking(browser, site) as opened:
        await opened.goto(site.address)
        yield opened


async def go(page: Page, name: str) -> None:
    """Open a page of the menu."""
    if await (fold := page.locator("button.fold")).is_visible():  # in a narrow window
        await fold.click()
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name=name, exact=True).click()
    await expect(page.locator("[aria-label=Pages] [aria-current]")).to_have_text(name)


async def fill(form: Locator, **fields: str) -> None:
    for label, text in fields.items():
        await form.get_by_label(label.replace("_", " ")).first.fill(text)


async def operations(site: Site) -> set[str]:
    """Return the operations of the audit."""
    return {row.operation for row in await audit.newest(site.house.session, limit=1000)}


async def test_failure_is_found_read_and_run_again(page: Page, site: Site) -> None:
    failures = page.locator("#failures")
    await failures.get_by_role("link", name="all").click()
    await page.locator(".chips label", has_text="abandoned").click()
    await page.wait_for_url(lambda url: "abandoned" not in url)
    assert "status=failed" in page.url
    statuses = await page.locator("#rows tbody tr .status").all_inner_texts()
    assert set(statuses) == {"failed"}
    await page.locator("#rows tbody tr", has_text="depot.drive").get_by_role("link").click()
    await expect(page.locator("#why")).to_contain_text("the road is closed")
    failed = UUID(page.url.rpartition("/")[2])
    await expect(page.locator("#why .why time[data-ago]")).to_have_text(re.compile(r"^(now|.+ ago)$"))
    await page.get_by_text("Rerun …", exact=True).click()
    form = page.locator("#do-rerun")
    await form.get_by_label("ok").select_option(label="yes")
    await form.get_by_role("button", name="Rerun").click()
    await expect(page.locator("#why .status")).to_have_text("completed")
    await page.locator("#why").get_by_role("link", name=str(failed)[-8:]).click()
    await page.wait_for_url(f"**/executions/{failed}")


async def test_execution_is_found_by_the_id_that_lists_show(page: Page, site: Site) -> None:
    short = str(site.ids["failed"])[-8:]
    await page.get_by_label("Find executions").fill(short)
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/executions/{site.ids['failed']}")
    await page.get_by_label("Find executions").fill("00000000")
    await page.keyboard.press("Enter")
    await expect(page.locator("#rows")).to_contain_text("No execution matches this filter.")


async def test_wrong_filter_is_refused_and_stays_in_the_form(page: Page, site: Site) -> None:
    await go(page, "Executions")
    await page.get_by_label("Labels").fill("acme")
    await page.get_by_label("Tenant").fill("public")
    await page.get_by_role("button", name="Show", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text(
        "label is not key=value: 'acme'. Write for example"
    )
    await expect(page.get_by_label("Labels")).to_have_value("acme")
    await expect(page.get_by_label("Tenant")).to_have_value("public")


async def test_answered_inquiry_names_its_responder(page: Page, site: Site) -> None:
    await go(page, "Inquiries")
    question = page.locator("section.ask", has_text="May the tour begin?")
    await question.get_by_role("button", name="Approve").click()
    await expect(page.get_by_text("May the tour begin?")).to_have_count(0)
    await page.locator(".chips label", has_text="include answered ones").click()
    answered = page.locator("main li", has_text="May the tour begin?")
    await expect(answered).to_contain_text("local access answered yes")
    await answered.get_by_role("link").click()
    await expect(page.locator("#answered")).to_contain_text("local access answered yes")
    await page.get_by_role("link", name="its workflow").click()
    await expect(page.locator("#why .status")).to_have_text("completed")
    assert await site.house.client.result(site.ids["tour"], timeout=10) is None


async def test_rule_is_tried_on_stored_events_and_starts_after_it_is_saved(
    page: Page, site: Site, tmp_path: Path
) -> None:
    await go(page, "Rules")
    await page.get_by_role("link", name="Write a rule …").click()
    form = page.locator("form.start")
    await fill(
        form,
        Name="depot.by_day",
        Trigger="depot.placed",
        Condition="payload.order == 101 or payload.missing",
        Action_or_workflow="depot.weigh",
    )
    await form.get_by_label("Parameters, as JSON").fill('{"parcel": "{{ payload.order }}", "words": "x"}')
    await form.get_by_role("button", name="Try it on stored events").click()
    status = page.locator("#tried").get_by_role("status")
    await expect(status).to_have_text("Of 2 events, the rule matches 1 and fails on 1.")
    await form.get_by_label("Condition").fill("payload.order == 101")
    await form.get_by_role("button", name="Try it on stored events").click()
    await expect(status).to_have_text("Of 2 events, the rule matches 1.")
    await page.get_by_role("button", name="Save depot.by_day").click()
    await expect(page.locator("#save .problem")).to_contain_text("words")
    await page.get_by_label("Parameters, as JSON").fill('{"parcel": "{{ payload.order }}"}')
    await page.get_by_role("button", name="Try it on stored events").click()
    await expect(page.locator("#tried")).to_contain_text('{"parcel":101}')
    texts = [await page.get_by_label(name, exact=True).inner_text() for name in ("YAML", "Python")]
    assert not await site.house.rows("select 1 from catalog where ref = 'depot.by_day'")
    await page.get_by_role("button", name="Save depot.by_day").click()
    await page.wait_for_url("**/rules/depot.by_day")
    [stored] = await site.house.rows(
        "select d.digest from catalog c join definition d on d.id = c.definition_id where c.ref = 'depot.by_day'"
    )
    for text, name in zip(texts, ("rule.yaml", "rule.py"), strict=True):
        (tmp_path / name).write_text(text)
        [document] = load_all(str(tmp_path / name)).documents()
        assert document.digest == stored["digest"], text
    await go(page, "Events")
    await page.get_by_text("Publish an event …").click()
    await page.locator("#pick").select_option("depot.placed")
    await page.get_by_role("button", name="Show the fields of this trigger").click()
    await page.get_by_label("order").fill("101")
    await page.get_by_role("button", name="Publish depot.placed").click()
    verdict = page.locator("#verdicts li", has_text="depot.by_day")
    await verdict.get_by_role("link", name="depot.weigh").click()
    await expect(page.locator("#why .status")).to_have_text("completed")
    await page.locator("#why").get_by_role("link", name="depot.by_day").click()
    await page.get_by_text("Delete …").click()
    await page.get_by_role("button", name="Delete the rule").click()
    await page.wait_for_url("**/rules")
    assert not await site.house.rows("select 1 from catalog where ref = 'depot.by_day'")


async def test_schedule_shows_its_fires_before_it_is_saved(page: Page, site: Site) -> None:
    await go(page, "Schedules")
    await page.get_by_role("link", name="Write a schedule …").click()
    form = page.locator("form.start")
    await fill(
        form,
        Name="depot.by_day",
        Expression="0 2 * *",
        Time_zone="Europe/Paris",
        Action_or_workflow="depot.confirm",
    )
    await form.get_by_role("button", name="Show the next start times").click()
    await expect(page.locator("form.start .problem")).to_contain_text("cron")
    await fill(form, Expression="0 2 * * 1")
    await form.get_by_role("button", name="Show the next start times").click()
    fires = await page.locator("#tried li").all_inner_texts()
    assert len(fires) == 10
    assert all(fire.startswith("Mon") and " 02:00:00" in fire for fire in fires)
    await page.get_by_role("button", name="Save depot.by_day").click()
    await page.wait_for_url("**/schedules/depot.by_day")
    await expect(page.locator("#next li")).to_have_count(10)
    await page.get_by_text("Delete …").click()
    await page.get_by_role("button", name="Delete the schedule").click()
    await page.wait_for_url("**/schedules")
    assert not await site.house.rows("select 1 from catalog where ref = 'depot.by_day'")


async def test_paused_schedule_names_the_end_of_its_pause(page: Page, site: Site) -> None:
    await go(page, "Schedules")
    await page.get_by_role("link", name="depot.hourly").first.click()
    await page.get_by_role("button", name="Pause for an hour").click()
    await expect(page.locator("#state")).to_contain_text("The schedule starts nothing until 20")
    await go(page, "Schedules")
    await expect(page.locator("#rows tr", has_text="depot.hourly")).to_contain_text("paused until 20")
    await page.get_by_role("link", name="depot.hourly").first.click()
    await page.get_by_role("button", name="Resume").click()
    await expect(page.locator("#state .status")).to_have_text("active")
    await expect(page.locator("#state")).not_to_contain_text("until 20")


async def test_backfill_refuses_a_wrong_range_and_counts_its_starts(page: Page, site: Site) -> None:
    await go(page, "Schedules")
    await page.get_by_role("link", name="depot.hourly").first.click()
    await page.get_by_text("Backfill …").click()
    form = page.locator("#do-backfill")
    await fill(form, From="2031-01-02T00:00", Until="2031-01-01T00:00")
    await form.get_by_role("button").click()
    await expect(form.locator(".problem")).to_contain_text("this range ends before it begins")
    await fill(form, Until="2031-01-03T00:00")
    await form.get_by_role("button").click()
    await expect(page.locator("[data-told]")).to_have_text("This range has no start time in the past.")


async def test_overview_leads_to_the_rule_that_failed(page: Page, site: Site) -> None:
    await page.locator("#attention").get_by_role("link", name="The rule depot.").click()
    await page.wait_for_url("**/rules#errors")
    await expect(page.locator("#errors")).to_contain_text("depot.broken")


async def test_access_is_given_and_taken_away(page: Page, site: Site) -> None:
    await go(page, "Tokens")
    await page.get_by_text("Create a token …").click()
    form = page.locator("#create form")
    await fill(form, name="night-shift")
    await form.locator(".chips label", has_text="viewer").click()
    await expect(page.locator("#rows tr", has_text="night-shift")).to_have_count(0)
    await form.get_by_role("button", name="Create the token").click()
    await expect(form.locator("[data-secret] code")).to_contain_text("pst_")
    secret = await form.locator("[data-secret] code").inner_text()
    row = page.locator("#rows tr", has_text="night-shift")
    await row.get_by_text("Rotate …").click()
    await row.get_by_role("button", name="Rotate the token").click()
    await expect(row.locator("[data-secret] code")).to_contain_text("pst_")
    assert await row.locator("[data-secret] code").inner_text() != secret
    await page.locator("h1").click()
    await row.get_by_text("Revoke …").click()
    await row.get_by_role("button", name="Revoke the token").click()
    await expect(row).to_have_count(0)
    await go(page, "Users")
    await page.get_by_text("Create a user …").click()
    form = page.locator("#create form")
    await fill(form, name="night", password="short")
    await form.get_by_role("button", name="Create the user").click()
    await expect(form.locator(".problem")).to_have_text(
        "Choose at least one of Roles.\nPassword should have at least 12 characters."
    )
    await fill(form, name="night", password="a password for the night")
    await form.locator(".chips label", has_text="operator").click()
    await form.get_by_role("button", name="Create the user").click()
    row = page.locator("#rows tr", has_text="night")
    await row.get_by_text("Roles …").click()
    await row.locator(".chips label", has_text="viewer").click()
    await row.get_by_role("button", name="Set the roles").click()
    await expect(row.locator('[data-name="roles"]')).to_have_text("viewer")
    await row.get_by_text("Delete …").click()
    await row.get_by_role("button", name="Delete the user").click()
    await expect(row).to_have_count(0)
    assert {
        "tokens_create",
        "tokens_rotate",
        "tokens_revoke",
        "users_create",
        "users_set_roles",
        "users_delete",
    } <= await operations(site)
    seen = await page.content()
    assert secret not in seen


async def test_secret_webhook_and_subscription_are_created_and_removed(page: Page, site: Site) -> None:
    await go(page, "Secrets")
    await page.get_by_text("Set a secret …").click()
    await fill(page.locator("#put"), name="day key", value="secret")
    await page.get_by_role("button", name="Set the secret").click()
    await expect(page.locator("#put .problem")).to_contain_text("Name should match pattern")
    await fill(page.locator("#put"), name="day_key", value="-----BEGIN KEY-----\nabc\n-----END KEY-----")
    await page.get_by_role("button", name="Set the secret").click()
    row = page.locator("#rows tr", has_text="day_key")
    await row.get_by_text("Delete …").click()
    await row.get_by_role("button", name="Delete the secret").click()
    await expect(row).to_have_count(0)
    await go(page, "Webhooks")
    await page.get_by_text("Create a webhook …").click()
    await fill(
        page.locator("#put"), name="day-hook", trigger="depot.placed", secret="a secret of sixteen letters"
    )
    await page.locator("#put").get_by_label("signature").select_option("github")
    await page.get_by_role("button", name="Create the webhook").click()
    row = page.locator("#rows tr", has_text="day-hook")
    await expect(row).to_have_count(1)
    await page.get_by_text("Create a webhook …").click()
    await fill(
        page.locator("#put"), name="day-hook", trigger="depot.placed", secret="another secret of sixteen"
    )
    await page.locator("#put").get_by_label("signature").select_option("github")
    await page.get_by_role("button", name="Create the webhook").click()
    await expect(page.locator("#put .problem")).to_contain_text("there already is a webhook 'day-hook'")
    await row.get_by_role("link", name="Change …").click()
    await expect(page.locator("#put").get_by_label("trigger")).to_have_value("depot.placed")
    await page.locator("#rows tr", has_text="day-hook").get_by_text("Remove …").click()
    await page.get_by_role("button", name="Remove the webhook").click()
    await expect(row).to_have_count(0)
    await go(page, "Subscriptions")
    await page.get_by_text("Create a subscription …").click()
    await fill(page.locator("#put"), name="day-calls", url="https://example.org/day")
    await page.locator("#put .chips label", has_text="failed").click()
    await page.get_by_role("button", name="Create the subscription").click()
    await expect(page.locator("#put [data-secret] code")).to_contain_text("whsec_")
    row = page.locator("#rows tr", has_text="day-calls")
    await expect(row.locator('[data-name="reports"]')).to_have_text("failed")
    await row.get_by_text("Remove …").click()
    await row.get_by_role("button", name="Remove the subscription").click()
    await expect(row).to_have_count(0)
    await go(page, "Audit")
    await expect(page.locator("#rows")).to_contain_text("subscriptions_remove")
    assert {"secrets_set_secret", "webhooks_put", "subscriptions_put"} <= await operations(site)


async def test_letter_is_unfolded_and_worker_is_cordoned(page: Page, site: Site) -> None:
    await go(page, "Dead letters")
    letters = page.locator("#letters")
    await expect(letters.locator("li")).not_to_be_visible()
    await letters.locator("summary").click()
    await letters.locator("li").get_by_role("link").click()
    await page.get_by_text("Delete …").click()
    await page.get_by_role("button", name="Delete the message").click()
    await expect(page.get_by_text("There are no dead letters.")).to_be_visible()
    await go(page, "Workers")
    await page.locator("#workers").get_by_role("button", name="Cordon", exact=False).first.click()
    await page.locator("#workers").get_by_role("button", name="Uncordon", exact=False).first.click()
    await expect(page.locator("#workers .status").first).to_have_text("active")
    assert not await site.house.rows("select 1 from dead_letter")
    site.ids["letter"] = await depot.keep_letter(site.house)  # the tests after this one look at it


async def test_times_are_in_the_zone_of_the_browser(browser: Browser, site: Site) -> None:
    context = await browser.new_context(timezone_id=ZONE, base_url=site.address)
    page = await context.new_page()
    await page.goto("/executions?find=depot.truck")
    [row] = await site.house.rows("select created_at from execution where id = $1", site.ids["good"])
    created: datetime = row["created_at"]
    local = created.astimezone(ZoneInfo(ZONE)).strftime("%Y-%m-%d %H:%M:%S")
    time = page.locator(f'#rows tr:has(a[href$="{site.ids["good"]}"]) time')
    title = await time.get_attribute("title") or ""
    assert title.startswith(local)
    assert created.astimezone(UTC).strftime("(%Y-%m-%d %H:%M:%S") in title
    await page.get_by_label("From").fill(created.astimezone(ZoneInfo(ZONE)).strftime("%Y-%m-%dT%H:%M"))
    await page.get_by_role("button", name="Show", exact=True).click()
    await page.wait_for_url(lambda url: f"since={created.astimezone(UTC):%Y-%m-%dT%H}%3A{created:%M}" in url)
    await expect(page.get_by_label("From")).to_have_value(
        created.astimezone(ZoneInfo(ZONE)).strftime("%Y-%m-%dT%H:%M")
    )
    await page.get_by_role("link", name="depot.truck").last.click()
    await expect(page.locator("#history time").first).to_contain_text(local[:16])
    await context.close()


async def test_graph_fits_zooms_and_says_that_it_scrolls(page: Page, site: Site) -> None:
    await page.set_viewport_size({"width": 390, "height": 844})
    await go(page, "Actions")
    await page.get_by_role("link", name="depot.tour").click()
    graph, says = page.locator(".graph > svg"), page.locator(".zoom .hint")
    drawn = float(await graph.evaluate("drawing => drawing.viewBox.baseVal.width"))
    fitting = float(await graph.get_attribute("width") or 0)
    assert fitting < drawn
    await page.get_by_role("button", name="Show the graph at its full size (100 %)").click()
    assert float(await graph.get_attribute("width") or 0) == drawn
    await expect(says).to_have_text("Zoom 100 %. Scroll for more.")
    await page.get_by_role("button", name="Fit the graph into its frame").click()
    assert float(await graph.get_attribute("width") or 0) == fitting


@pytest.mark.parametrize("width", [1280, 390])
async def test_skipped_task_has_its_reason_in_the_timeline(page: Page, site: Site, width: int) -> None:
    await page.set_viewport_size({"width": width, "height": 844})
    await page.goto(f"{site.address}/executions/{site.ids['good']}")
    row = page.locator(".g-row", has_text="again")
    await expect(row.locator(".g-note")).to_have_text("drive did not choose this task (`next`)")
    # The first page of the stream may replace the row between two looks at it, so the page itself looks once.
    right = await page.evaluate(RIGHT_OF_NOTE)
    assert 0 < right <= width


async def test_rule_leads_to_its_matches(page: Page, site: Site) -> None:
    await go(page, "Rules")
    await page.get_by_role("link", name="depot.any", exact=True).click()
    await page.get_by_role("link", name="Matches", exact=True).click()
    await expect(page.get_by_label("Rule", exact=True)).to_have_value("depot.any")
    rules = await page.locator("#rows tbody tr td:first-child").all_inner_texts()
    assert rules
    assert {rule.strip() for rule in rules} == {"depot.any"}


async def test_event_without_a_rule_leads_to_the_form_of_one(page: Page, site: Site) -> None:
    event = await site.house.client.publish("depot.unused", {"order": 5})
    await page.goto(f"{site.address}/events/{event}")
    await page.get_by_role("link", name="Write a rule", exact=True).click()
    await expect(page.get_by_label("Trigger", exact=True)).to_have_value("depot.unused")


async def test_buttons_of_the_filter_stand_side_by_side(page: Page, site: Site) -> None:
    await page.goto(f"{site.address}/executions?paused=true")
    show = await page.get_by_role("button", name="Show", exact=True).bounding_box()
    clear = await page.locator(".filter").get_by_role("link", name="Clear the filter").bounding_box()
    assert show is not None
    assert clear is not None
    assert show["y"] == clear["y"]
    paused = page.locator(".chips label", has_text="only paused")
    assert await paused.evaluate("label => parseFloat(getComputedStyle(label).columnGap)") > 0


async def test_worker_in_a_history_leads_to_the_workers(page: Page, site: Site) -> None:
    await page.goto(f"{site.address}/executions/{site.ids['failed']}")
    await page.locator(".moves a", has_text="worker ").first.click()
    await page.wait_for_url("**/workers")


async def test_figures_of_the_overview_are_those_of_the_rows(page: Page, site: Site) -> None:
    [ends] = await site.house.rows(
        "select count(*) filter (where new = any($1)) as ended,"
        " count(*) filter (where new = any($2) and e.parent is null) as bad"
        " from history join execution e on e.id = execution_id",
        ["completed", "failed", "timeout", "abandoned", "cancelled", "skipped"],
        ["failed", "timeout", "abandoned"],
    )
    await page.reload()
    tiles = page.locator("#tiles .tile")
    await expect(tiles.nth(1).locator("b")).to_have_text(f"{ends['ended']:,}")
    await expect(tiles.nth(2).locator("b")).to_have_text(str(ends["bad"]))
