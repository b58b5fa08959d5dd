"""The audit of the API: who gave whom what, in the transaction of the change; refusals; and no secret in any row."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import orjson
from fastapi.routing import iter_route_contexts

from penstock.operate import audit as operate
from penstock_api.auth.access import GuardedRoute
from tests.penstock_api.conftest import Api

V1 = "/api/v1"
SECRET = "a password of enough length"


async def newest(call: httpx.AsyncClient, **chosen: Any) -> list[dict[str, Any]]:
    answer = await call.get(f"{V1}/audit", params=chosen)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["items"]
    return rows


async def test_change_is_noted_with_its_values(api: Api, call: httpx.AsyncClient) -> None:
    assert (
        await call.post(
            f"{V1}/users",
            json={"name": "eve", "password": SECRET, "roles": ["operator"], "tenants": ["shop"]},
        )
    ).status_code == 201
    roles = f"{V1}/users/eve/roles"
    assert (await call.put(roles, json={"roles": ["developer"], "tenants": ["shop"]})).status_code == 200
    assert (
        await call.post(f"{V1}/tokens", json={"name": "bot", "scopes": ["operator"], "tenants": ["shop"]})
    ).status_code == 201
    await call.delete(f"{V1}/tokens/bot", headers={"x-reason": "it leaked"})
    url = "https://example.org:8443/hooks/SECRETKEY?token=SECRETKEY"
    put = await call.put(f"{V1}/subscriptions/told", json={"url": url})
    assert put.status_code == 200, put.text
    await call.delete(f"{V1}/subscriptions/told")
    await call.put(f"{V1}/secrets/pin", json={"value": "SECRETVALUE", "reason": "new"})
    await call.delete(f"{V1}/users/eve")
    rows = {row["operation"]: row for row in await newest(call, by="token:all", limit=10)}
    assert rows["users_create"]["details"] == {
        "after": ["operator of shop"],
        "name": "eve",
        "password": {"bytes": len(SECRET)},
        "roles": ["operator"],
        "tenants": ["shop"],
    }
    assert rows["users_set_roles"]["details"]["before"] == ["operator of shop"]
    assert rows["users_set_roles"]["details"]["after"] == ["developer of shop"]
    assert rows["users_set_roles"]["target"] == roles
    assert rows["users_delete"]["details"]["before"] == ["developer of shop"]
    assert rows["tokens_create"]["details"]["scopes"] == ["read", "operate"]
    assert rows["tokens_revoke"]["details"]["scopes"] == ["read", "operate"]
    assert rows["tokens_revoke"]["reason"] == "it leaked"
    assert rows["secrets_set_secret"]["details"] == {"value": {"bytes": 11}}
    assert {row["outcome"] for row in rows.values()} == {"done"}
    text = orjson.dumps(await newest(call, limit=100)).decode()
    assert "SECRET" not in text
    assert SECRET not in text
    assert rows["subscriptions_put"]["details"]["url"] == "https://example.org:8443"
    assert operate.origin_of("https://user:pw@example.org/x?y") == "https://example.org"


async def test_bulk_is_noted_with_its_choice_and_numbers(api: Api, call: httpx.AsyncClient) -> None:
    for order in range(3):
        await call.post(
            f"{V1}/executions", json={"action": "shop.charge", "parameters": {"order": order}, "delay": 600}
        )
    chosen = {"chosen": {"action": "shop.charge", "tenant": "public"}, "reason": "no more"}
    dry = await call.post(f"{V1}/bulk/executions/cancel", json={**chosen, "dry_run": True})
    done = await call.post(f"{V1}/bulk/executions/cancel", json=chosen)
    told, looked = await newest(call, operation="bulk_cancel", limit=2)
    assert (told["outcome"], told["reason"]) == ("done", "no more")
    assert told["details"]["chosen"] == {"action": "shop.charge", "tenant": "public"}
    assert told["details"]["told"] == done.json()["count"] >= 3
    assert (looked["outcome"], looked["details"]["dry_run"]) == ("unchanged", True)
    assert dry.json()["count"] >= 3


async def test_a_change_whose_row_cannot_be_written_is_not_made(api: Api, call: httpx.AsyncClient) -> None:
    await api.house.session.fetch(
        "create function refuse_audit() returns trigger language plpgsql as $$ begin raise exception 'full'; end $$"
    )
    await api.house.session.fetch(
        "create trigger refused before insert on audit for each row execute function refuse_audit()"
    )
    try:
        refused = await call.post(f"{V1}/tokens", json={"name": "unseen", "scopes": ["read"]})
        assert refused.status_code == 503
    finally:
        await api.house.session.fetch("drop trigger refused on audit")
        await api.house.session.fetch("drop function refuse_audit()")
    assert "unseen" not in (await call.get(f"{V1}/tokens")).text


async def test_refusals_are_noted_with_the_caller_and_counted(api: Api, call: httpx.AsyncClient) -> None:
    await api.token("onlooker", "viewer")
    async with api.caller("onlooker") as onlooker:
        for _ in range(5):
            assert (await onlooker.post(f"{V1}/tokens", json={})).status_code == 403
            assert (await onlooker.get(f"{V1}/tokens")).status_code == 403
    refused = await newest(call, by="token:onlooker")
    assert [(row["operation"], row["outcome"]) for row in refused] == [
        ("tokens_list_tokens", "refused"),
        ("tokens_create", "refused"),
    ]
    await api.app.state.backend.refused_calls.close()  # as at the end of a window
    counts = [row["details"]["count"] for row in await newest(call, by="token:onlooker")]
    assert sorted(counts) == [1, 1, 4, 4]
    before = await newest(call, outcome="refused", by="address:127.0.0.1")
    api.secrets["no more"] = "pst_" + "y" * 43
    async with api.caller("no more") as unknown:
        for _ in range(100):
            assert (await unknown.get(f"{V1}/tokens")).status_code == 401
    assert len(await newest(call, outcome="refused", by="address:127.0.0.1")) == len(before) + 1


async def test_a_flood_of_refusals_writes_few_rows(api: Api, call: httpx.AsyncClient) -> None:
    calls = api.app.state.backend.refused_calls
    await calls.close()
    before = len(await newest(call, outcome="refused", limit=1000))
    await asyncio.gather(
        *(calls.note(None, f"10.0.{n // 250}.{n % 250}", "x", "/x", "no") for n in range(2000))
    )
    await calls.close()
    rows = (await newest(call, outcome="refused", limit=1000))[: -before or None]
    assert len(rows) < 60
    assert sum(row["details"]["count"] for row in rows) == 2000


async def test_log_ins_and_sign_ins_with_a_token_are_noted(api: Api, call: httpx.AsyncClient) -> None:
    await call.post(f"{V1}/users", json={"name": "mia", "password": SECRET, "roles": ["viewer"]})
    async with api.caller(None) as browser:
        own = {"origin": "http://penstock"}
        good = await browser.post(f"{V1}/session", json={"name": "mia", "password": SECRET}, headers=own)
        bad = await browser.post(f"{V1}/session", json={"name": "mia", "password": "wrong"}, headers=own)
        kept = await browser.post("/sign-in", data={"token": api.secrets["all"]}, headers=own)
    assert (good.status_code, bad.status_code, kept.status_code) == (200, 401, 303)
    [entered] = await newest(call, operation="tokens_sign_in")
    assert (entered["by"], entered["outcome"]) == ("token:all", "done")
    rows = [row for row in await newest(call, operation="users_log_in") if "mia" in row["by"] + row["target"]]
    assert ("user:mia", "done") in {(row["by"], row["outcome"]) for row in rows}
    assert any(row["outcome"] == "refused" and row["target"] == "user:mia" for row in rows)


async def test_log_out_is_noted_once(api: Api, call: httpx.AsyncClient) -> None:
    await call.post(f"{V1}/users", json={"name": "mia", "password": SECRET, "roles": ["viewer"]})
    async with api.caller(None) as browser:
        own = {"origin": "http://penstock"}
        await browser.post(f"{V1}/session", json={"name": "mia", "password": SECRET}, headers=own)
        for _ in range(2):  # the second time there is no session any more
            assert (await browser.delete(f"{V1}/session", headers=own)).status_code == 204
    [row] = await newest(call, operation="users_log_out")
    assert (row["by"], row["target"], row["outcome"]) == ("user:mia", "user:mia", "done")


async def test_rows_are_filtered_and_the_head_is_told(api: Api, call: httpx.AsyncClient) -> None:
    await call.post(f"{V1}/rules/shop.big_orders/disable")
    await call.post(f"{V1}/rules/shop.big_orders/enable")
    rows = await newest(call, operation="definitions_", target=f"{V1}/rules/shop.big", limit=2)
    assert [row["operation"] for row in rows] == ["definitions_enable", "definitions_disable"]
    assert await newest(call, until="2020-01-01T00:00:00Z") == []
    assert await newest(call, role="nobody") == []
    await api.house.until("select 1 where not exists (select from audit where position is null)")
    head = (await call.get(f"{V1}/audit/head")).json()["head"]
    found = await operate.verify(api.house.session, [operate.Head.read(head)])
    assert not found.faults
    assert found.rows


def test_each_field_of_a_change_is_known_to_be_kept_or_sized(api: Api) -> None:
    document = api.app.openapi()
    known = operate.KEPT | operate.SIZED | operate.ADDRESSES | {"reason"}
    changing = {
        (method.lower(), context.path)
        for context in iter_route_contexts(api.app.routes)
        if isinstance(route := context.original_route, GuardedRoute) and route._changes
        for method in route.methods or ()
        if method != "GET"
    }
    assert len(changing) > 40
    missing = set()
    for method, path in changing:
        operation = document["paths"].get(path, {}).get(method)
        if operation is None:
            continue
        for content in operation.get("requestBody", {}).get("content", {}).values():
            missing |= set(fields(document, content["schema"], set())) - known
        missing |= {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"} - known
    assert not missing, "say in penstock.operate.audit whether the audit keeps these fields"


def fields(document: dict[str, Any], schema: dict[str, Any], seen: set[str]) -> list[str]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in seen:
            return []
        seen.add(name)
        schema = document["components"]["schemas"][name]
    found = []
    for name, inner in schema.get("properties", {}).items():
        found += [name, *fields(document, inner, seen)]
    for inner in [*schema.get("anyOf", ()), *schema.get("allOf", ()), *schema.get("oneOf", ())]:
        found += fields(document, inner, seen)
    return found + (fields(document, schema["items"], seen) if "items" in schema else [])
