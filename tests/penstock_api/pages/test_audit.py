"""The page of the audit: its filters, its older rows, and the callers that may see it."""

from __future__ import annotations

import re

import httpx

from penstock.store.session import audited_change
from penstock.store.session.audited_change import Change
from tests.penstock_api.conftest import Api
from tests.penstock_api.pages.test_sign_in import visitor

EVIL = "<img src=x onerror=alert(1)>"


async def noted(
    api: Api, by: str, operation: str, target: str, reason: str | None = None, **details: object
) -> None:
    change = Change(by, operation, target, reason, dict(details))
    await audited_change.note(api.house.session, change, audited_change.DONE)


async def operations(client: httpx.AsyncClient, address: str) -> list[str]:
    """Return the operations of the rows that a page shows."""
    answer = await client.get(address)
    assert answer.status_code == 200, answer.text
    return re.findall(r'<tr data-row><td class="wide"><b>(.*?)</b>', answer.text)


async def test_rows_are_filtered_by_each_field(api: Api) -> None:
    await noted(api, "user:page", "page_one", "/api/v1/pages/a", tenant="shop")
    await noted(api, "user:page", "page_two", "/api/v1/pages/b", tenants=["shop", "bank"])
    await noted(api, "token:page", "page_three", "/api/v1/pages/c", reason="because", tenant="bank", size=7)
    await api.house.session.fetch(
        "update audit set at = '2020-03-01 23:30:00+00' where operation = 'page_two'"
    )
    async with visitor(api, token="all") as client:
        for address, shown in {
            "operation=page": ["page_three", "page_two", "page_one"],
            "by=user:page": ["page_two", "page_one"],
            "target=/api/v1/pages/c": ["page_three"],
            "operation=page&tenant=shop": ["page_two", "page_one"],
            "operation=page&tenant=bank": ["page_three", "page_two"],
            "operation=page&tenant=other": [],
            "operation=page&outcome=done&since=2020-03-01&until=2020-03-01": ["page_two"],
            "operation=page&since=2020-03-02": ["page_three", "page_one"],
            "operation=page&until=2020-02-29": [],
            "operation=page&until=9999-12-31": ["page_three", "page_two", "page_one"],
            "operation=page&outcome=refused": [],
        }.items():
            assert await operations(client, f"/audit?{address}") == shown, address
        text = (await client.get("/audit?operation=page_three")).text
        assert "because" in text
        assert "&#34;size&#34;: 7" in text
        assert (await client.get("/audit?since=yesterday")).status_code == 422


async def test_older_rows_are_on_the_next_page(api: Api) -> None:
    for number in range(60):
        await noted(api, "user:pages", "many", str(number))
    async with visitor(api, token="all") as client:
        text = (await client.get("/audit?by=user:pages")).text
        assert text.count("<tr data-row>") == 50
        [older] = re.findall(r'rel="next" href="(.*?)"', text)
        text = (await client.get(older.replace("&amp;", "&"))).text
        assert re.findall(r'<span class="dim">(\d+)</span>', text) == [str(n) for n in range(9, -1, -1)]
        assert 'rel="next"' not in text


async def test_head_of_the_chain_is_shown_with_the_command(api: Api) -> None:
    await noted(api, "user:ada", "sealed", "x")
    await api.house.until("select 1 where not exists (select from audit where position is null)")
    async with visitor(api, token="all") as client:
        text = (await client.get("/audit")).text
        assert "penstock audit verify" in text
        head = re.search(r'<code class="long">(\d+:[0-9a-f]{64})</code>', text)
    assert head is not None
    position, seal = head[1].split(":")
    [row] = await api.house.session.fetch("select seal from audit where position = $1", int(position))
    assert row["seal"].hex() == seal


async def test_no_text_of_a_row_becomes_markup(api: Api) -> None:
    await noted(api, EVIL, f"evil{EVIL}", EVIL, reason=EVIL, name=EVIL)
    async with visitor(api, token="all") as client:
        text = (await client.get("/audit?operation=evil")).text
    assert "<img src=x" not in text
    assert text.count("&lt;img src=x") >= 5


async def test_page_is_for_administrators_of_all_tenants(api: Api) -> None:
    await api.token("audit-admin-of-shop", "administrator", tenants=("shop",))
    await api.token("audit-developer", "developer")
    for name, status in (("all", 200), ("audit-developer", 403), ("audit-admin-of-shop", 403)):
        async with visitor(api, token=name) as client:
            assert (await client.get("/audit")).status_code == status, name
            assert ('href="/audit"' in (await client.get("/executions")).text) is (status == 200)
    async with visitor(api) as client:
        assert (await client.get("/audit")).status_code == 303
