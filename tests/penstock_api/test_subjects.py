"""The commands of the command line, over HTTP: subject by subject."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from penstock import Schedule, action
from penstock.language.workflows import from_yaml
from tests.flows import shop
from tests.penstock_api.conftest import Api

V1 = "/api/v1"


@action(pack="bank", breaker={"failures": 2, "of": 4, "by": "host"})
async def pay(host: str) -> None: ...


async def got(call: httpx.AsyncClient, path: str, **query: Any) -> Any:
    answer = await call.get(V1 + path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def sent(call: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    answer = await call.request(method, V1 + path, json=body)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


async def test_an_event_says_which_rules_matched_and_why_the_others_did_not(
    api: Api, call: httpx.AsyncClient
) -> None:
    said = {"trigger": "shop.order_placed", "payload": {"id": 13, "amount": 500}}
    tried = await sent(call, "POST", "/triggers/shop.order_placed/try", {"payload": said["payload"]})
    assert {one["rule"]: one["verdict"] for one in tried} == {
        "shop.big_orders": "matched",
        "shop.broken": "failed",
    }
    assert await api.house.rows("select from event where payload ->> 'amount' = '500'") == []
    id = (await sent(call, "POST", "/events", said))["id"]
    await api.house.until("select 1 from enforcement where event_id = $1 and status = 'executed'", id)
    found = await got(call, f"/events/{id}")
    verdicts = {one["rule"]: one for one in found["rules"]}
    assert verdicts["shop.big_orders"]["execution"]
    assert "nothing" in verdicts["shop.broken"]["error"]
    [listed] = (await got(call, "/events", trigger="shop.order_placed", limit=1))["items"]
    assert (listed["id"], listed["payload"]["amount"], listed["matched"]) == (id, 500, 2)
    failed = await got(call, "/rule-errors", rule="shop.broken")
    assert id in {one["event_id"] for one in failed}
    again = await sent(call, "POST", "/rule-errors/rerun", {"event": id})
    assert [(one["rule"], one["what"]) for one in again] == [("shop.broken", "failed")]
    await sent(call, "POST", "/rules/shop.big_orders/disable")
    assert (await got(call, "/rules/shop.big_orders"))["enabled"] is False
    await sent(call, "POST", "/rules/shop.big_orders/enable")
    assert {rule["ref"]: rule["errors"] > 0 for rule in await got(call, "/rules")}["shop.broken"]


async def test_rule_sees_the_stored_events_of_the_callers_tenants_again(
    api: Api, call: httpx.AsyncClient
) -> None:
    for tenant in ("acme", "globex"):
        order = {"trigger": "shop.order_placed", "payload": {"id": 7, "amount": 500}, "tenant": tenant}
        await sent(call, "POST", "/events", order)
    await api.house.until("select 1 where not exists (select from unmatched)")
    again = {
        "action": "shop.charge",
        "trigger": "shop.order_placed",
        "when": "payload.id == 7",
        "params": {"order": 7},
    }
    await sent(call, "PUT", "/rules/shop.again", again)
    since = (datetime.now(UTC) - timedelta(minutes=50)).isoformat()
    await api.token("of acme", "operate", tenants=("acme",))
    async with api.caller("of acme") as caller:
        dry = await sent(caller, "POST", "/rules/shop.again/replay", {"since": since, "dry_run": True})
        assert [(item["tenant"], item["outcome"], item["params"]) for item in dry["items"]] == [
            ("acme", "would start", {"order": 7})
        ]
        refused = await caller.post(
            V1 + "/rules/shop.again/replay", json={"since": since, "tenant": "globex"}
        )
        assert refused.status_code == 403
        done = await sent(caller, "POST", "/rules/shop.again/replay", {"since": since})
        assert [item["outcome"] for item in done["items"]] == ["started"]
    others_replayed = await sent(call, "POST", "/rules/shop.again/replay", {"since": since})
    assert [item["outcome"] for item in others_replayed["items"] if item["outcome"] != "no match"] == [
        "existing",
        "started",
    ]
    rows = (await got(call, "/audit", operation="definitions_replay", limit=1))["items"]
    assert (rows[0]["details"]["events"], rows[0]["details"]["started"]) == (len(others_replayed["items"]), 1)
    await sent(call, "DELETE", "/rules/shop.again")


async def test_a_limit_is_changed_and_shows_its_holders_and_waiters(
    api: Api, call: httpx.AsyncClient
) -> None:
    start = {"action": "shop.wait_for", "parameters": {"seconds": 60}}
    ids = [(await sent(call, "POST", "/executions", start))["id"] for _ in range(3)]
    await api.house.until("select 1 from waiter")
    held = await got(call, "/limits/shop.door/holders")
    waits = await got(call, "/limits/shop.door/waiters")
    assert ({one["execution_id"] for one in held}, [one["execution_id"] for one in waits]) == (
        set(ids[:2]),
        ids[2:],
    )
    assert "shop.door" in {line["limit"] for line in await got(call, "/lines")}
    assert (await got(call, f"/executions/{ids[2]}/why"))["because"] == "limit"
    changed = await sent(call, "PATCH", "/limits/shop.door", {"max": 3})
    assert (changed["max"], changed["by_hand"], changed["declared"]["max"]) == (3, True, 2)
    await api.house.until("select 1 where not exists (select from waiter)")
    assert (await sent(call, "DELETE", "/limits/shop.door"))["in_force"]["max"] == 2
    for id in ids:
        await sent(call, "POST", f"/executions/{id}/cancel", {})


async def test_breaker_is_opened_listed_and_closed(api: Api, call: httpx.AsyncClient) -> None:
    await api.house.apply(pay)
    bank = {"ref": "bank.pay", "parameters": {"host": "a"}}
    assert (await call.post(f"{V1}/breakers/close", json=bank)).status_code == 409
    assert (await call.post(f"{V1}/breakers/open", json={"ref": "bank.missing"})).status_code == 404
    assert (await call.post(f"{V1}/breakers/open", json={"ref": "bank.pay"})).status_code == 422
    await sent(call, "POST", "/breakers/open", {**bank, "reason": "it moves"})
    [row] = await got(call, "/breakers")
    assert (row["ref"], row["group_value"], row["state"]) == ("bank.pay.breaker", '["a"]', "open")
    assert (row["by_whom"], row["reason"], row["probe_in"]) == ("token:all", "it moves", None)
    assert "it moves" in (await call.get("/limits")).text
    await sent(call, "POST", "/breakers/close", bank)
    [row] = await got(call, "/breakers")
    assert (row["state"], row["allowed"]) == ("releasing", 2)
    await sent(call, "POST", "/breakers/close", {**bank, "at_once": True})
    assert await got(call, "/breakers") == []
    notes = await api.house.rows(
        "select operation from audit where operation like '%breaker%' and outcome = 'done'"
    )
    assert len(notes) == 3


async def test_a_schedule_is_made_changed_previewed_paused_run_and_deleted(
    api: Api, call: httpx.AsyncClient
) -> None:
    new = {"ref": "shop.hourly", "action": "shop.count", "cron": "0 * * * *", "params": {"words": "x"}}
    made = await sent(call, "POST", "/schedules", {**new, "missed": {"policy": "skip"}})
    assert (made["what"], made["schedule"]["state"]) == ("new", "active")
    assert (await call.post(f"{V1}/schedules", json=new)).status_code == 409
    await sent(call, "PATCH", "/schedules/shop.hourly", {"every": "90s", "missed": {"grace": "7m"}})
    definition = (await got(call, "/schedules/shop.hourly/definition"))["definition"]
    assert "cron" not in definition
    assert definition["missed"] == {"policy": "skip", "grace": 420}
    first, second = await got(call, "/schedules/shop.hourly/preview", count=2)
    assert datetime.fromisoformat(second["instant"]) - datetime.fromisoformat(first["instant"]) == timedelta(
        seconds=90
    )
    [paused] = await sent(call, "POST", "/schedule-pauses", {"refs": ["shop.hourly"], "seconds": 60})
    assert paused["state"] == "paused"
    fire = await sent(call, "POST", "/schedules/shop.hourly/run")
    assert fire["execution_id"]
    now = datetime.now(UTC)
    past = {"first": (now - timedelta(minutes=10)).isoformat(), "last": now.isoformat(), "dry_run": True}
    assert any(one["starts"] for one in await sent(call, "POST", "/schedules/shop.hourly/backfill", past))
    assert (await got(call, "/schedules/shop.hourly/stats"))["fires"] == 1
    assert len(await got(call, "/schedules/shop.hourly/history")) == 1
    await sent(call, "DELETE", "/schedules/shop.hourly")
    assert (await call.get(f"{V1}/schedules/shop.hourly")).status_code == 404


async def test_a_workflow_shows_its_versions_and_their_differences(api: Api, call: httpx.AsyncClient) -> None:
    text = "workflow: shop.twice\ntasks:\n  a: {action: shop.count, input: {words: x}}\n"
    for more in ("", "  b: {action: shop.charge, input: {order: 1}, needs: [a]}\n"):
        await api.house.apply(from_yaml(text + more))
    new, old = await got(call, "/workflows/shop.twice/versions")
    assert (new["current"], old["current"]) == (True, False)
    [difference] = await got(call, "/workflows/shop.twice/diff", old=old["digest"][:12])
    assert (difference["what"], difference["at"]) == ("added", ["tasks", "b"])
    nodes = (await got(call, "/workflows/shop.twice/graph"))["nodes"]
    assert [(node["name"], node["does"], node["after"]) for node in nodes] == [
        ("a", "shop.count", []),
        ("b", "shop.charge", ["a"]),
    ]
    assert len((await got(call, "/workflows/shop.twice/graph", version=old["digest"]))["nodes"]) == 1


async def test_operators_look_and_act(api: Api, call: httpx.AsyncClient) -> None:
    [worker] = [one for one in await got(call, "/workers") if one["kind"] == "worker"]
    assert (await sent(call, "POST", f"/workers/{worker['name']}/cordon"))["names"] == [worker["name"]]
    assert (await call.post(f"{V1}/workers/{worker['name']}/cordon")).status_code == 404
    await sent(call, "POST", f"/workers/{worker['name']}/uncordon")
    assert all(not one["violations"] for one in await got(call, "/check"))
    assert {"schema": "ok", "transport": "ok"}.items() <= {
        one["what"]: one["state"] for one in await got(call, "/doctor")
    }.items()
    assert "work.default" in {queue["queue"] for queue in await got(call, "/queues")}
    assert [one["name"] for one in await got(call, f"/workers/{worker['name']}")] == [worker["name"]]
    [route] = await got(call, "/routes")
    assert (route["route"], route["workers"]) == ("default", 1)
    choice = await got(call, "/route-choice", of="shop.count")
    assert (choice["namespace"], choice["route"]) == ("public::shop::count", "default")
    await sent(call, "POST", "/definitions/shop.called/retire")
    late = await call.post(f"{V1}/events", json={"trigger": "shop.called"})
    assert (late.status_code, "--undo" in late.json()["hint"]) == (404, True)
    await sent(call, "POST", "/definitions/shop.called/restore")
    await api.house.rows(
        "insert into dead_letter (id, queue, reason, body, headers, fingerprint) "
        "values (gen_random_uuid(), 'event.received', 'no JSON', '{', '{}', 'x')"
    )
    [letter] = (await got(call, "/dead-letters", queue="event.received"))["items"]
    assert (await got(call, f"/dead-letters/{letter['id']}"))["body"] == "{"
    refused = await call.post(f"{V1}/dead-letters/{letter['id']}/replay")
    assert (refused.status_code, "which trigger" in refused.json()["detail"]) == (409, True)
    await sent(call, "DELETE", f"/dead-letters/{letter['id']}")
    assert (await call.delete(f"{V1}/dead-letters/{letter['id']}")).status_code == 404


async def test_secrets_are_set_and_never_read(api: Api, call: httpx.AsyncClient) -> None:
    await api.token("starts", "operator")
    await api.token("acme", "developer", tenants=("acme",))
    made = await sent(call, "PUT", "/secrets/pin", {"value": "of the house"})
    assert (made["tenant"], made["set_by"]) == ("public", "token:all")
    async with api.caller("acme") as acme:
        assert await got(acme, "/secrets") == []
        assert (await acme.put(f"{V1}/secrets/pin", json={"value": "abcdef"})).status_code == 403
        assert (await acme.delete(f"{V1}/secrets/pin")).status_code == 403
        theirs = {"value": "abcdef", "tenant": "acme"}
        assert (await acme.put(f"{V1}/secrets/pin", json=theirs)).status_code == 200
    body = {"action": "shop.count", "secrets": {"words": "pin"}}
    async with api.caller("starts") as starts:
        assert (await starts.post(f"{V1}/executions", json=body)).status_code == 403
    id = (await sent(call, "POST", "/executions", body))["id"]
    assert await api.house.client.result(id, timeout=20) == 3
    assert (await got(call, f"/executions/{id}"))["params"] == {"words": "{{ secrets.pin }}"}
    await api.house.apply(
        Schedule("shop.pinned", action=shop.count, cron="0 2 * * *", params={"words": "{{ secrets.pin }}"})
    )
    deleted = await sent(call, "DELETE", "/secrets/pin")
    assert (deleted["name"], deleted["tenant"]) == ("pin", "public")
    assert "still use the secret pin: schedule shop.pinned." in deleted["notice"]
    await sent(call, "DELETE", "/schedules/shop.pinned")
    assert [one["tenant"] for one in await got(call, "/secrets")] == ["acme"]


async def test_subscriptions_are_made_listed_and_removed(api: Api, call: httpx.AsyncClient) -> None:
    body = {"url": "https://example.org/hook", "statuses": ["failed"], "labels": {"team": "a"}}
    made = await sent(call, "PUT", "/subscriptions/billing", body)
    assert made["subscription"]["labels"] == {"team": "a"}
    wrong = {**body, "labels": {"Team": "a"}}
    assert (await call.put(f"{V1}/subscriptions/billing", json=wrong)).status_code == 422
    assert made["secret"].startswith("whsec_")
    assert (await sent(call, "PUT", "/subscriptions/billing", body))["secret"] is None
    assert (await call.put(f"{V1}/subscriptions/odd", json={"url": "file:///etc/passwd"})).status_code == 422
    [listed] = await got(call, "/subscriptions")
    assert (listed["waiting"], listed["disabled_at"], listed["labels"]) == (0, None, {"team": "a"})
    assert (await sent(call, "POST", "/subscriptions/billing/enable"))["name"] == "billing"
    await sent(call, "DELETE", "/subscriptions/billing")
    assert await got(call, "/subscriptions") == []
