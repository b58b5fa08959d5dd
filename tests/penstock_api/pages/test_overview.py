"""The overview: what needs attention, and the pages behind the causes of waiting."""

from __future__ import annotations

import html
import re

import pytest

from penstock.language.terms.ids import new_id
from penstock.operate import activity
from penstock.operate.activity import ActivityWatch
from tests.penstock_api.conftest import Api

LETTER = """
insert into dead_letter (id, queue, reason, body, headers, fingerprint)
values ($1, 'events', 'its mapping is odd', $2, '{}', $3)
"""


async def test_overview_names_dead_letters_until_they_are_gone(api: Api) -> None:
    await api.house.rows("delete from dead_letter")
    async with api.caller() as caller:
        assert "dead letter," not in (await caller.get("/")).text
        id = new_id()
        await api.house.rows(LETTER, id, b"{}", str(id))
        text = (await caller.get("/")).text
        assert (
            'href="/dead-letters">A message in the queue events could not be handled: “its mapping is odd”'
            in text
        )
        await api.house.rows("delete from dead_letter")
        assert "dead letter," not in (await caller.get("/")).text


async def test_overview_of_one_tenant_names_no_troubles(api: Api) -> None:
    await api.token("one-tenant", "read", tenants=("acme",))
    id = new_id()
    await api.house.rows(LETTER, id, b"{}", str(id))
    try:
        async with api.caller("one-tenant") as caller:
            page = await caller.get("/")
            assert page.status_code == 200
            assert "dead letters" not in page.text
    finally:
        await api.house.rows("delete from dead_letter")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/api/v1/executions/7", "path.id is not an id, such as "),
        ("/api/v1/executions?limit=many", "query.limit is not a whole number"),
        ("/executions/7", "path.id is not an id, such as "),
    ],
)
async def test_value_of_the_wrong_form_is_named(api: Api, path: str, text: str) -> None:
    async with api.caller() as caller:
        answer = await caller.get(path)
        assert answer.status_code == 422
        assert text in answer.text
        assert "Input should" not in answer.text


SILENT = """
insert into process (id, kind, name, routes, actions, labels, concurrency, started_at, beat_at, state)
values ($1, $2, $3, '{default}', '{}', '{}', 99, clock_timestamp() - interval '1 h', clock_timestamp() - interval '1 h', $4)
"""


async def test_overview_counts_only_workers_that_are_online(api: Api) -> None:
    [[count, slots]] = await api.house.rows(
        "select count(*), sum(concurrency) from process where kind = 'worker' and state = 'active'"
    )
    await api.house.rows(SILENT, new_id(), "worker", "killed", "active")
    await api.house.rows(SILENT, new_id(), "worker", "buried", "dead")
    api.app.state.backend._activity = ActivityWatch()
    try:
        async with api.caller() as caller:
            text = (await caller.get("/")).text
            workers = (await caller.get("/workers")).text
    finally:
        await api.house.rows("delete from process where name in ('killed', 'buried')")
        api.app.state.backend._activity = ActivityWatch()
    assert re.findall(r"<b>(\d+)</b><span>workers? online, \d+ of (\d+) slots", text) == [
        (str(count), str(slots))
    ]
    assert "killed" in workers
    [current, dead] = re.split(r"<summary>\d+ dead process(?:es)?</summary>", workers)
    assert ("buried" in current, "buried" in dead) == (False, True)


@pytest.mark.parametrize("path", ["/webhooks", "/subscriptions", "/secrets"])
async def test_pages_of_secrets_name_a_missing_master_key(
    api: Api, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    reader = f"reads{path.replace('/', '-')}"
    await api.token(reader, "read")
    backend = api.app.state.backend
    async with api.caller() as caller:
        assert "master key for secrets" not in (await caller.get(path)).text
    monkeypatch.setattr(backend, "settings", backend.settings.model_copy(update={"secrets_key": None}))
    async with api.caller() as caller:
        text = (await caller.get(path)).text
    async with api.caller(reader) as caller:
        seen_by_reader = (await caller.get(path)).text
    assert "The reason: there is no master key for secrets." in text
    assert "PENSTOCK_SECRETS_KEY_FILE" in text
    assert "PENSTOCK_SECRETS_KEY_FILE" not in seen_by_reader


async def test_figures_and_plots_of_the_overview_have_one_span(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        activity, "PATIENCE", -1.0
    )  # as on a busy database: a look counts the newest slices only
    api.app.state.backend._activity = ActivityWatch()
    spans = re.compile(
        r"(?:in the last|\(last) ([^,<]+?)(?:,|\))|aria-label=\"The last ([^\"]+)\"|<span>([^<]+) ago</span><span>now"
    )
    try:
        async with api.caller() as caller:
            first = (await caller.get("/")).text
            monkeypatch.setattr(activity, "PATIENCE", 60.0)
            api.app.state.backend._activity = ActivityWatch()
            whole = (await caller.get("/")).text
    finally:
        api.app.state.backend._activity = ActivityWatch()
    assert {"".join(match) for match in spans.findall(first)} == {"90 s"}
    assert "The earlier executions of the last 15 min are still being counted." in first
    assert {"".join(match) for match in spans.findall(whole)} == {"15 min"}
    assert "Penstock still counts" not in whole


async def test_overview_says_which_figures_count_tasks(api: Api) -> None:
    async with api.caller() as caller:
        text = (await caller.get("/")).text
    assert (
        "Failures, p50 and p95 count only top-level executions. "
        "The number of ended executions also counts tasks of workflows and child executions." in text
    )


async def test_overview_says_that_durations_include_waits(api: Api) -> None:
    async with api.caller() as caller:
        text = (await caller.get("/")).text
    names = re.findall(
        r"(p\d+) duration of top-level executions in the last \d+ (?:min|s), including waits",
        text,
    )
    assert names == ["p50", "p95"]


async def test_overview_counts_an_execution_that_waits_once(api: Api) -> None:
    await api.house.rows("delete from dead_letter")
    id = await api.house.client.start("shop.approved")
    await api.house.until(
        "select from inquiry i join execution e on e.id = i.execution_id where e.parent = $1", id
    )
    api.app.state.backend._activity = ActivityWatch()
    async with api.caller() as caller:
        text = (await caller.get("/")).text
        match = re.search(r'<b><a href="([^"]+)">(\d+)</a></b><span>open top-level execution', text)
        assert match is not None, text[:3000]
        listed = (await caller.get(html.unescape(match[1]))).text
    assert listed.count("<tr data-row>") == int(match[2])
    assert f"/executions/{id}" in listed
    await api.house.client.cancel(id)
    api.app.state.backend._activity = ActivityWatch()


async def test_search_finds_an_execution_by_each_of_its_names(api: Api) -> None:
    id = await api.house.client.start(
        "shop.count", {"words": "x"}, delay=3600, key="a-key-to-find", labels={"team": "billing"}
    )
    async with api.caller() as caller:
        for find in ("shop.count", "team=billing", "a-key-to-find"):
            assert str(id) in (await caller.get("/executions", params={"find": find})).text, find
        none = (await caller.get("/executions", params={"find": "of no execution"})).text
        by_id = await caller.get("/executions", params={"find": str(id)})
        everywhere = (await caller.get("/workers")).text
        assert "<dt>idempotency key<dd>a-key-to-find<" in (await caller.get(f"/executions/{id}")).text
        assert (await caller.get(f"/api/v1/executions/{id}")).json()["key"] == "a-key-to-find"
    await api.house.client.cancel(id)
    assert "No execution matches this filter." in none
    assert by_id.headers["location"] == f"/executions/{id}"
    assert 'name="find" type="search" data-search' in everywhere


async def test_unknown_address_is_a_page_for_browsers_alone(api: Api) -> None:
    browser = {"accept": "text/html,*/*;q=0.8"}
    async with api.caller() as caller:
        page = await caller.get("/nowhere", headers=browser)
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "there is no page at /nowhere" in page.text
        assert 'aria-label="Pages"' in page.text
        for path, headers in (("/nowhere", {}), ("/api/v1/nowhere", browser)):
            answer = await caller.get(path, headers=headers)
            assert answer.status_code == 404
            assert answer.headers["content-type"].startswith("application/problem+json"), answer.text
    async with api.caller(None) as stranger:
        page = await stranger.get("/nowhere", headers=browser)
        assert (page.status_code, 'aria-label="Pages"' in page.text) == (404, False)


async def test_refused_page_has_the_menu_of_the_caller(api: Api) -> None:
    await api.token("finder", "read")
    async with api.caller("finder") as caller:
        page = await caller.get("/users", headers={"accept": "text/html"})
    assert (page.status_code, "Not allowed" in page.text) == (403, True)
    assert 'href="/executions" data-key="e"' in page.text
    assert 'href="/users"' not in page.text


async def test_answered_inquiry_is_confirmed_with_a_link(api: Api) -> None:
    id = new_id()
    async with api.caller() as caller:
        text = (await caller.get("/inquiries", params={"done": str(id)})).text
    assert f'role="status">The answer is stored. <a href="/executions/{id}">' in text
