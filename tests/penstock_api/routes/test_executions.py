"""Executions over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx
import pytest
from httpx import AsyncClient
from opentelemetry import trace
from pydantic import SecretStr

from penstock.client.client import Client
from penstock.client.http_client import HttpClient
from penstock.errors import InvalidInput, NotFound
from penstock.language.terms.ids import new_id
from penstock.operate import secrets
from penstock.store.session.database import Database
from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.flows.test_signals_by_key import place as orders_place
from tests.flows.traced import arrived, traced
from tests.penstock_api.conftest import Api

V1 = "/api/v1"


async def ended(call: AsyncClient, api: Api, id: str) -> dict[str, Any]:
    await api.house.until("select 1 from execution where id = $1 and finished_at is not null", UUID(id))
    found: dict[str, Any] = (await call.get(f"{V1}/executions/{id}")).json()
    return found


async def test_it_starts_once_for_a_key_and_is_found_in_every_view(api: Api, call: AsyncClient) -> None:
    wanted = {"action": "shop.count", "parameters": {"words": "one two three"}}
    headers = {"Idempotency-Key": "order-7"}
    first = await call.post(f"{V1}/executions", json=wanted, headers=headers)
    again = await call.post(f"{V1}/executions", json=wanted, headers=headers)
    assert (first.status_code, first.json()) == (201, again.json())
    id = first.json()["id"]
    assert first.headers["location"] == f"{V1}/executions/{id}"
    found = await ended(call, api, id)
    assert (found["status"], found["result"], found["params"]) == ("completed", 3, wanted["parameters"])
    assert found["origin"] == {"by": "token:all"}
    moves = (await call.get(f"{V1}/executions/{id}/history")).json()
    assert [move["new"] for move in moves][-2:] == ["running", "completed"]
    why = (await call.get(f"{V1}/executions/{id}/why")).json()
    assert why["because"] == "ended"
    other = await call.post(
        f"{V1}/executions", json={**wanted, "parameters": {"words": "x"}}, headers=headers
    )
    assert (other.status_code, other.headers["content-type"]) == (409, "application/problem+json")
    assert "other parameters" in other.json()["detail"]
    assert other.json()["hint"]


async def test_pages_go_on_where_the_one_before_ended(api: Api, call: AsyncClient) -> None:
    ids = [str(await api.house.client.start("shop.charge", {"order": n})) for n in range(5)]
    seen: list[str] = []
    query = {"action": "shop.charge", "limit": "2"}
    while True:
        page = (await call.get(f"{V1}/executions", params=query)).json()
        seen += [row["id"] for row in page["items"]]
        if page["next"] is None:
            break
        query["before"] = page["next"]
    assert [id for id in seen if id in ids] == ids[::-1]
    assert len(set(seen)) == len(seen)
    middle = (await call.get(f"{V1}/executions/{ids[2]}")).json()["created_at"]
    for edge, wanted in (("since", ids[2:]), ("until", ids[:2])):
        page = (await call.get(f"{V1}/executions", params={"action": "shop.charge", edge: middle})).json()
        found = {row["id"] for row in page["items"]}
        assert set(wanted) - found <= {ids[2]}, edge  # its id was made a moment before its row


async def test_a_refusal_equals_that_of_the_command_line(call: AsyncClient) -> None:
    unknown = await call.post(f"{V1}/executions", json={"action": "shop.chrage"})
    assert unknown.status_code == 404
    assert "shop.charge" in unknown.json()["hint"]
    wrong = await call.post(f"{V1}/executions", json={"action": "shop.count", "parameters": {"word": "x"}})
    assert wrong.status_code == 422
    assert wrong.json()["hint"]
    misspelt = await call.post(f"{V1}/executions", json={"acton": "shop.count"})
    assert {fault["at"] for fault in misspelt.json()["faults"]} == {"body.action", "body.acton"}
    nobody = await call.get(f"{V1}/executions/{new_id()}")
    assert (nobody.status_code, nobody.json()["type"]) == (404, "urn:penstock:error:NotFound")
    large = await call.post(
        f"{V1}/executions", json={"action": "shop.count", "parameters": {"words": "x" * 400_000}}
    )
    assert large.status_code == 413


async def test_a_running_execution_names_the_sender_of_a_command(api: Api, call: AsyncClient) -> None:
    id = (await call.post(f"{V1}/executions", json={"action": "shop.approved"})).json()["id"]
    await api.house.until(
        "select 1 from inquiry i join execution e on e.id = i.execution_id where e.parent = $1", UUID(id)
    )
    shown = (await call.get(f"{V1}/executions/{id}")).json()
    assert [(task["name"], task["status"]) for task in shown["tasks"]][:2] == [
        ("first", "completed"),
        ("ask", "waiting"),
    ]
    assert "ask" in (await call.get(f"{V1}/executions/{id}/graph")).text
    asked = next(
        one
        for one in (await call.get(f"{V1}/inquiries")).json()
        if one["execution_id"] == shown["tasks"][1]["execution"]
    )
    assert (asked["prompt"], asked["schema"]) == ("May it be charged?", {"type": "boolean"})
    unknown = await call.post(f"{V1}/executions/{id}/skip", json={"task": "lost"})
    assert (unknown.status_code, unknown.json()["hint"]) == (404, "Did you mean 'last'?")
    told = await call.post(f"{V1}/executions/{id}/skip", json={"task": "last", "reason": "not today"})
    assert told.status_code == 202
    assert "tasks that have not ended: `ask`" in told.json()["notice"]
    answer = f"{V1}/inquiries/{asked['execution_id']}/answer"
    assert (await call.post(answer, json={"response": "yes"})).status_code == 422
    assert (await call.post(answer, json={"response": True})).status_code == 204
    found = await ended(call, api, id)
    assert found["status"] == "completed"
    sent = [(command["kind"], command["by"], command["reason"]) for command in found["told"]]
    assert sent == [("skip", "token:all", "not today"), ("answer", "token:all", None)]
    late = await call.post(f"{V1}/executions/{id}/skip", json={"task": "last"})
    assert (late.status_code, late.json()["detail"]) == (409, f"{id} has ended: it is completed")
    assert late.json()["hint"] == f"Run it again from this task: penstock rerun {id} --from last"
    new = await call.post(f"{V1}/executions/{id}/rerun", json={"from_task": "last", "reason": "now"})
    assert new.status_code == 201
    again = await ended(call, api, new.json()["id"])
    assert again["origin"]["by"] == "token:all"


async def test_signal_by_key_reaches_functions_of_own_tenants(api: Api) -> None:
    await api.house.start(orders_place)
    id = await api.house.client.start("orders.place", {"order": 7}, key="order-7", tenant="ours")
    await api.token("pays", "operate", "read", tenants=("ours",))
    message = {"key": "order-7", "tenant": "ours", "name": "paid", "value": {"amount": 25}}
    async with api.caller("pays") as payer:
        refused = await payer.post(f"{V1}/signals", json={**message, "tenant": "public"})
        assert (refused.status_code, "may not use tenant 'public'" in refused.json()["detail"]) == (403, True)
        unknown = await payer.post(f"{V1}/signals", json={**message, "key": "order-8"})
        assert (unknown.status_code, "order-8" in unknown.json()["detail"]) == (404, True)
        sent = await payer.post(f"{V1}/signals", json=message)
        assert (sent.status_code, sent.json()["execution_id"]) == (200, str(id))
    assert await api.house.client.result(id, timeout=20) == {"amount": 25}
    async with api.caller("pays") as payer:
        assert (await payer.post(f"{V1}/signals", json=message)).status_code == 409


async def test_http_client_signals_by_key(api: Api) -> None:
    await api.house.start(orders_place)
    id = await api.house.client.start("orders.place", {"order": 9}, key="order-9")
    transport = httpx.ASGITransport(api.app, raise_app_exceptions=False)
    async with HttpClient("http://penstock", token=api.secrets["all"], transport=transport) as client:
        assert (await client.signal(key="order-9", name="paid", value=1)).execution_id == id
        with pytest.raises(NotFound, match="order-9"):
            await client.signal(key="order-9", tenant="acme", name="paid")
        with pytest.raises(InvalidInput, match="one receiver"):
            await client.signal(name="paid")


async def test_rerun_merges_parameters_and_keeps_references(api: Api, call: AsyncClient) -> None:
    await secrets.put(api.house.session, "public", "phrase", "two words", by="test")
    id = await api.house.client.start("shop.count", secrets={"words": "phrase"})
    await ended(call, api, str(id))
    path = f"{V1}/executions/{id}/rerun"
    await api.token("operator", "operate", "read")
    async with api.caller("operator") as operator:
        refused = await operator.post(path, json={"parameters": {"words": "a b c"}})
        assert (refused.status_code, "define" in refused.json()["detail"]) == (403, True)
        assert (await operator.post(path, json={})).status_code == 201
    unknown = await call.post(path, json={"parameters": {"word": "a"}})
    assert (unknown.status_code, "words" in unknown.json()["hint"]) == (422, True)
    assert (await call.post(path, json={"unset": ["words"]})).status_code == 422
    assert (await call.post(path, json={"unset": ["nope"]})).json()["hint"]
    changed = await call.post(path, json={"parameters": {"words": "a b c"}, "reason": "three"})
    again = await ended(call, api, changed.json()["id"])
    assert (again["result"], again["params"]) == (3, {"words": "a b c"})


async def test_a_cancelled_execution_names_its_canceller(api: Api, call: AsyncClient) -> None:
    started = await call.post(
        f"{V1}/executions", json={"action": "shop.count", "parameters": {"words": "x"}, "delay": 3600}
    )
    id = started.json()["id"]
    told = await call.post(f"{V1}/executions/{id}/cancel", json={"reason": "too late"})
    assert told.json() == {"told": 1}
    found = await ended(call, api, id)
    assert (found["status"], found["reason"]) == ("cancelled", "too late (token:all)")


async def test_while_the_database_is_away_it_says_so_and_when_to_come_back(api: Api) -> None:
    settings = api.house.settings(database_url=SecretStr("postgresql://127.0.0.1:1/none"), api_access="open")
    client = Client(settings, Database(settings, role="test"), api.house.client.publisher)
    transport = httpx.ASGITransport(make_app(Backend.of(client)))
    async with AsyncClient(transport=transport, base_url="http://localhost") as call:
        away = await call.get(f"{V1}/actions")
    assert (away.status_code, away.headers["retry-after"]) == (503, "1")
    assert "PENSTOCK_DATABASE_URL" in away.json()["hint"]


async def test_a_start_goes_on_with_the_trace_of_its_request_and_shows_it(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace_id, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with traced(monkeypatch) as received:
        backend = Backend.of(api.house.client)
        transport = httpx.ASGITransport(make_app(backend))
        headers = {
            "authorization": f"Bearer {api.secrets['all']}",
            "traceparent": f"00-{trace_id}-{parent}-01",
        }
        async with httpx.AsyncClient(
            transport=transport, base_url="http://penstock", headers=headers
        ) as caller:
            wanted = {"action": "shop.count", "parameters": {"words": "one two three"}}
            id = (await caller.post(f"{V1}/executions", json=wanted)).json()["id"]
            found = await ended(caller, api, id)
            assert found["trace"] == {"id": trace_id, "url": None}
            assert found["origin"] == {"by": "token:all"}
        await arrived(received, "start shop.count")
        async with HttpClient("http://penstock", token=api.secrets["all"], transport=transport) as client:
            with trace.get_tracer("of the caller").start_as_current_span("shop"):
                await client.start("shop.count", {"words": "a"})
        await arrived(received, "shop")
        await arrived(received, "start shop.count", count=2)
        await backend.changes.close()
    assert [span.parent for span in received.named("start shop.count")] == [parent, received.one("shop").id]
