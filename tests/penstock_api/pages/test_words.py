"""The words of the pages: the rules that hold for each page, and the sentences that depend on a state."""

from __future__ import annotations

import re

import httpx

from tests.penstock_api.pages.conftest import Site
from tests.penstock_api.pages.test_page import PAGES

SINCE_AN_AGE = re.compile(r"since <time[^>]*data-ago")
"""An age is no instant: "since 5 s ago" is no English."""


def visitor(site: Site) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=site.address, headers={"accept": "text/html"})


async def test_no_page_says_since_an_age(site: Site) -> None:
    async with visitor(site) as client:
        texts = {name: (await client.get(path.format(**site.ids))).text for name, path in PAGES.items()}
    assert [name for name, text in texts.items() if SINCE_AN_AGE.search(text)] == []


async def test_waits_are_shown_as_durations(site: Site) -> None:
    async with visitor(site) as client:
        inquiries = (await client.get("/inquiries")).text
        limit = (await client.get("/limits/depot.gate")).text
    for text in (inquiries, limit):
        assert re.search(r"<time [^>]*data-lasting>for [\d.]+ \w+</time>", text), text[-2000:]


async def test_local_access_has_a_name_and_no_account(site: Site) -> None:
    async with visitor(site) as client:
        account = (await client.get("/account")).text
    assert "Local access (no login)" in account
    assert "You are not logged in. Local access needs no login." in account


async def test_event_page_names_the_action_of_a_rule_without_match(site: Site) -> None:
    async with visitor(site) as client:
        event = (await client.get(f"/events/{site.ids['event']}")).text
    assert "(action depot.check)</span>: the condition is false: payload.order == 13" in event


async def test_audit_without_rows_says_so(site: Site) -> None:
    rows = await site.house.rows("select count(*) as n from audit")
    async with visitor(site) as client:
        audit = (await client.get("/audit")).text
    assert ("The audit log is empty" in audit) == (rows[0]["n"] == 0)
