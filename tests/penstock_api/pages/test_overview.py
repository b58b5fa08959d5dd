"""The overview: what needs attention, and the pages behind the causes of waiting."""

from __future__ import annotations

import re

import pytest

from penstock.language.terms.ids import new_id
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
        assert 'href="/dead-letters">Newest dead letter, from the queue events: “its mapping is odd”' in text
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
    assert re.findall(r"<b>(\d+)</b><span>workers?, (\d+) slots", text) == [(str(count), str(slots))]
    assert "killed" in workers
    assert "buried" in workers


async def test_overview_says_which_figures_count_tasks(api: Api) -> None:
    async with api.caller() as caller:
        text = (await caller.get("/")).text
    assert (
        "Failures, p50 and p95 count only top-level executions: no tasks of workflows, and no child executions. "
        "The number of ended executions counts all." in text
    )
