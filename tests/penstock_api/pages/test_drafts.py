"""Rules and schedules that are written on pages: what a trial shows, and the requests that save them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Annotated

import httpx
import pytest
from pydantic import Field

from penstock import Rule, Schedule, Trigger, Window, action
from penstock_api.models.definitions import PutRule
from penstock_api.models.schedules import PutSchedule
from tests.penstock_api.conftest import THEIRS, Api
from tests.penstock_api.pages.forms import forms

V1 = "/api/v1"
DRAFT = {"ref": "drafts.any", "trigger": "drafts.come", "action": "drafts.take"}


@action(pack="drafts")
async def take(pin: Annotated[str, Field(json_schema_extra={"secret": True})] = "", n: int = 0) -> None:
    pass


@pytest.fixture
async def reader(api: Api) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client that may read the tenant `theirs` alone."""
    await api.house.apply(Trigger("drafts.come"), take)
    if "reader of drafts" not in api.secrets:
        await api.token("reader of drafts", "read", tenants=(THEIRS,))
        for tenant, n in (("public", 1), (THEIRS, 2), ("public", 3)):
            body = {"trigger": "drafts.come", "payload": {"n": n, "pin": "4711"}, "tenant": tenant}
            async with api.caller() as publisher:
                assert (await publisher.post(f"{V1}/events", json=body)).status_code == 201
        await api.house.until("select 1 from event where trigger = 'drafts.come' having count(*) = 3")
    async with api.caller("reader of drafts") as client:
        yield client


async def tried(client: httpx.AsyncClient, **options: str) -> str:
    page = await client.get("/rules/new", params={**DRAFT, **options}, headers={"accept": "text/html"})
    assert page.status_code == 200, page.text
    return re.sub(r"\s+", " ", page.text)


async def test_draft_is_tried_by_callers_that_may_save_it(
    reader: httpx.AsyncClient, call: httpx.AsyncClient
) -> None:
    """A condition such as `payload.pin == "4711"` reads what pages mask."""
    assert (await reader.get("/rules/new", params=DRAFT)).status_code == 403
    assert (await reader.get("/schedules/new", params=DRAFT)).status_code == 403
    assert "Of 3 events, the rule matches 3." in await tried(call)
    assert "Of 3 events, the rule matches 2." in await tried(call, when="payload.n != 2")
    assert "Of 3 events, the rule matches 1." in await tried(call, tenant=THEIRS)
    text = await tried(call, params='{"pin": "{{ payload.pin }}", "n": "{{ payload.n }}"}')
    assert "***" in text
    assert "4711" not in text


async def test_saved_rule_is_replaced_whole_and_audited(api: Api, reader: httpx.AsyncClient) -> None:
    path = f"{V1}/rules/drafts.saved"
    body = {"trigger": "drafts.come", "action": "drafts.take", "when": "payload.n == 99", "priority": 3}
    async with api.caller() as call:
        assert (await call.put(path, json=body)).json() == {"ref": "drafts.saved", "what": "new"}
        assert (await call.put(path, json=body)).json()["what"] == "unchanged"
        del body["priority"]
        assert (await call.put(path, json=body)).json()["what"] == "changed"
        stored = (await call.get(path)).json()["definition"]
        assert stored == {"ref": "drafts.saved", **body}
        refused = await call.put(path, json={**body, "action": "drafts.tale"})
        assert refused.status_code == 422, refused.text
        assert "drafts.take" in refused.text  # the name that was probably meant
        assert (await reader.put(path, json=body)).status_code == 403
        rows = (await call.get(f"{V1}/audit", params={"target": path})).json()["items"]
        outcomes = [row["outcome"] for row in rows if row["outcome"] != "refused"]  # refusals are noted later
        assert outcomes == ["done", "unchanged", "done"]
        assert {row["operation"] for row in rows} == {"definitions_put_rule"}
        assert (await call.delete(path)).status_code == 204


async def test_rule_with_a_secret_value_is_not_changed_on_a_page(
    api: Api, reader: httpx.AsyncClient, call: httpx.AsyncClient
) -> None:
    hidden = Rule(
        "drafts.hidden", trigger="drafts.come", action=take, when="false", params={"pin": "08154711"}
    )
    await api.house.apply(hidden)
    page = await call.get("/rules/new", params={"change": "drafts.hidden"}, headers={"accept": "text/html"})
    assert page.status_code == 422
    assert "contains a secret, so it cannot be edited on a page" in page.text
    assert "Change drafts.hidden in its file" in page.text
    assert "08154711" not in page.text
    assert (await call.delete(f"{V1}/rules/drafts.hidden")).status_code == 204


SLOW = Rule("drafts.slow", trigger="drafts.come", action=take, when="false", debounce="30s", priority=5)
SEVERAL = Rule("drafts.slow", action=take, window=Window(count=["drafts.come"], at_least=1000, within="1h"))


@pytest.mark.parametrize("rule", [SLOW, SEVERAL], ids=["debounce", "window"])
async def test_option_without_a_field_stays_in_a_changed_rule(
    api: Api, reader: httpx.AsyncClient, call: httpx.AsyncClient, rule: Rule
) -> None:
    """The form begins with all options, and the draft that it sends has all of them."""
    await api.house.apply(rule)
    page = await call.get("/rules/new", params={"change": "drafts.slow"}, headers={"accept": "text/html"})
    [form] = [form for form in forms(page.text, "/rules/new") if form.key == ("GET", "/rules/new")]
    stored = (await call.get(f"{V1}/rules/drafts.slow")).json()["definition"]
    draft = await call.get("/rules/new", params=form.body, headers={"accept": "text/html"})
    [save] = [form for form in forms(draft.text, "/rules/new") if form.of_a_script]
    assert {"ref": "drafts.slow", **save.body} == stored
    assert (await save.send(call)).json() == {"ref": "drafts.slow", "what": "unchanged"}
    assert (await call.delete(f"{V1}/rules/drafts.slow")).status_code == 204


def test_request_has_the_options_of_a_rule() -> None:
    assert set(PutRule.model_fields) == set(Rule.model_fields) - {"ref"}


SCHEDULES = {
    "cron": Schedule(
        "drafts.timed",
        action=take,
        cron="0 2 * * 1",
        timezone="Europe/Paris",
        params={"n": 7},
        context={"shift": "night"},
        jitter="30s",
        missed={"policy": "delay", "delay": "5m", "catch_up": "all"},
        overlap="queue",
        ends_at="2090-01-01T00:00:00+00:00",
        retry={"max_attempts": 3},
        priority=4,
        expires="1h",
        tenant=THEIRS,
        description="Takes each week.",
    ),
    "every": Schedule("drafts.timed", action=take, every=5400.5, enabled=False),
    "at": Schedule("drafts.timed", action=take, at="2090-01-31T09:00", timezone="Europe/Paris"),
    "rrule": Schedule(
        "drafts.timed", action=take, rrule="DTSTART:20300107T090000 RRULE:FREQ=WEEKLY;BYDAY=MO"
    ),
}


@pytest.mark.parametrize("kind", SCHEDULES)
async def test_schedule_is_changed_with_all_of_its_options(
    api: Api, reader: httpx.AsyncClient, call: httpx.AsyncClient, kind: str
) -> None:
    """The form begins with all options, and the draft that it sends has all of them, with the edited one changed."""
    await api.house.apply(SCHEDULES[kind])
    path, html = f"{V1}/schedules/drafts.timed", {"accept": "text/html"}
    link = await call.get("/schedules/drafts.timed", headers=html)
    assert 'href="/schedules/new?change=drafts.timed"' in link.text
    page = await call.get("/schedules/new", params={"change": "drafts.timed"}, headers=html)
    [form] = [form for form in forms(page.text, "/schedules/new") if form.key == ("GET", "/schedules/new")]
    stored = (await call.get(f"{path}/definition")).json()["definition"]
    draft = await call.get("/schedules/new", params=form.body, headers=html)
    assert draft.status_code == 200, draft.text
    [save] = [form for form in forms(draft.text, "/schedules/new") if form.of_a_script]
    assert save.key == ("PUT", path)
    assert {"ref": "drafts.timed", **save.body} == stored
    assert (await save.send(call)).json()["what"] == "unchanged"
    edited = await call.get("/schedules/new", params={**form.body, "description": "Takes."}, headers=html)
    [save] = [form for form in forms(edited.text, "/schedules/new") if form.of_a_script]
    assert (await save.send(call)).json()["what"] == "changed"
    after = (await call.get(f"{path}/definition")).json()["definition"]
    assert after == {**stored, "description": "Takes."}
    assert (await call.delete(path)).status_code == 204


async def test_put_schedule_drops_omitted_options_and_is_audited(api: Api, reader: httpx.AsyncClient) -> None:
    path, body = f"{V1}/schedules/drafts.put", {"action": "drafts.take", "every": "5m", "jitter": "10s"}
    async with api.caller() as call:
        assert (await call.put(path, json=body)).json()["what"] == "new"
        assert (await call.put(path, json=body)).json()["what"] == "unchanged"
        del body["jitter"]
        assert (await call.put(path, json=body)).json()["what"] == "changed"
        stored = (await call.get(f"{path}/definition")).json()["definition"]
        assert stored == {"ref": "drafts.put", "action": "drafts.take", "every": 300}
        refused = await call.put(path, json={**body, "cron": "0 2 * * *"})
        assert refused.status_code == 422, refused.text
        assert (await call.put(path, json={**body, "cron": None})).json()["what"] == "unchanged"
        assert (await reader.put(path, json=body)).status_code == 403
        rows = (await call.get(f"{V1}/audit", params={"target": path})).json()["items"]
        assert {row["operation"] for row in rows} == {"schedules_put_schedule"}
        assert (await call.delete(path)).status_code == 204


async def test_schedule_with_a_secret_value_is_not_changed_on_a_page(
    api: Api, reader: httpx.AsyncClient, call: httpx.AsyncClient
) -> None:
    await api.house.apply(Schedule("drafts.sealed", action=take, every="1h", params={"pin": "08154711"}))
    page = await call.get(
        "/schedules/new", params={"change": "drafts.sealed"}, headers={"accept": "text/html"}
    )
    assert page.status_code == 422
    assert "contains a secret, so it cannot be edited on a page" in page.text
    assert "Change drafts.sealed in its file" in page.text
    assert "08154711" not in page.text
    assert (await call.delete(f"{V1}/schedules/drafts.sealed")).status_code == 204


def test_request_has_the_options_of_a_schedule() -> None:
    assert set(PutSchedule.model_fields) == set(Schedule.model_fields) - {"ref"}
