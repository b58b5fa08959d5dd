"""Many at once over HTTP: chosen by a filter, counted first, in parts, and only one's own."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient

from penstock_api.routes import bulk
from tests.penstock_api.conftest import Api

V1 = "/api/v1"
MINE = "bulk"


async def done(caller: AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    answer = await caller.post(f"{V1}{path}", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_many_are_cancelled_in_parts_and_run_once_more(
    api: Api, call: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "CANCELLED", 2)
    monkeypatch.setattr("penstock.client.executions.CANCELLED_AT_ONCE", 2)
    monkeypatch.setattr(bulk, "RERUN", 2)
    monkeypatch.setattr("penstock.client.executions.RERUN_AT_ONCE", 2)
    start = api.house.client.start
    for n in range(5):
        await start("shop.charge", {"order": n}, delay=3600, tenant=MINE)
    foreign = await start("shop.charge", {"order": 9}, delay=3600)
    await api.token(MINE, "operator", tenants=(MINE,))
    chosen = {"action": "shop.charge", "status": ["requested"]}
    async with api.caller(MINE) as mine:
        counted = await done(mine, "/bulk/executions/cancel", chosen=chosen, dry_run=True)
        assert (counted["count"], counted["next"]) == (5, None)
        counts, before = [], None
        while True:
            part = await done(mine, "/bulk/executions/cancel", chosen=chosen, before=before, reason="a flood")
            counts.append(part["count"])
            if (before := part["next"]) is None:
                break
        assert counts == [2, 2, 1]
        where = {"chosen": {"status": ["cancelled"]}, "reason": "the flood is over"}
        assert (await done(mine, "/bulk/executions/rerun", **where, dry_run=True))["count"] == 2
        first = await done(mine, "/bulk/executions/rerun", **where)
        rest = await done(mine, "/bulk/executions/rerun", **where, before=first["next"])
        last = await done(mine, "/bulk/executions/rerun", **where, before=rest["next"])
        assert [one["count"] for one in (first, rest, last)] == [2, 2, 1]
        assert (await done(mine, "/bulk/executions/rerun", **where))["count"] == 0
        other = await mine.post(f"{V1}/bulk/executions/cancel", json={"chosen": {"tenant": "public"}})
        assert other.status_code == 403
    [row] = await api.house.rows("select status from execution where id = $1", foreign)
    assert row["status"] == "requested"
    reasons = await api.house.rows("select distinct reason from history where reason like 'a flood%'")
    assert [row["reason"] for row in reasons] == ["a flood (token:bulk)"]
    await api.house.client.cancel(foreign)
    await api.house.until(  # other tests watch what moves here
        "select 1 where not exists (select from execution e join namespace n on n.id = e.namespace_id "
        "where n.name like 'bulk::%' and e.finished_at is null)"
    )


async def refusal(caller: AsyncClient, path: str, **body: Any) -> str:
    answer = await caller.post(f"{V1}{path}", json=body)
    assert answer.status_code == 422, answer.text
    return str(answer.json()["detail"])


@pytest.mark.parametrize("command", ["cancel", "rerun"])
async def test_bulk_command_takes_the_times_of_lists(call: AsyncClient, command: str) -> None:
    path = f"/bulk/executions/{command}"
    for since in ("0s", "2030-12-31T00:00:00Z", "2030-12-31"):
        assert (await done(call, path, chosen={"since": since}, dry_run=True))["count"] == 0
    for since in ("20301231", "5"):
        detail = await refusal(call, path, chosen={"since": since}, dry_run=True)
        assert detail.startswith(f"since: '{since}' is neither an instant nor an age")
        listed = await call.get(f"{V1}/executions", params={"since": since})
        assert (listed.status_code, listed.json()["detail"]) == (422, detail)


@pytest.mark.parametrize("command", ["cancel", "rerun"])
async def test_reason_with_a_nul_is_refused_where_nothing_matches(call: AsyncClient, command: str) -> None:
    chosen = {"action": "shop.nothing"}
    detail = await refusal(call, f"/bulk/executions/{command}", chosen=chosen, reason="a\0b")
    assert "body.reason holds a NUL character" in detail


async def test_lists_refuse_a_text_that_is_no_tenant(call: AsyncClient) -> None:
    for path in ("/executions", "/events", "/inquiries", "/audit"):
        answer = await call.get(f"{V1}{path}", params={"tenant": "ACME"})
        assert (answer.status_code, "not a valid tenant name" in answer.text) == (422, True), path
    view = {"name": "acme", "filters": {"tenant": "ACME"}}
    assert (await call.post(f"{V1}/views", json=view)).status_code == 422


async def test_executions_of_a_label_or_a_key_are_chosen(api: Api, call: AsyncClient) -> None:
    start = api.house.client.start
    options: dict[str, Any] = {"delay": 3600, "tenant": "bulk-labels"}
    await start("shop.charge", {"order": 1}, labels={"customer": "acme", "run": "a"}, **options)
    await start("shop.charge", {"order": 2}, labels={"customer": "acme", "run": "b"}, key="k-2", **options)
    other = await start("shop.charge", {"order": 3}, labels={"customer": "bolt"}, key="k-3", **options)

    async def count(**chosen: Any) -> int:
        answer = await done(call, "/bulk/executions/cancel", chosen=chosen, dry_run=True)
        return int(answer["count"])

    assert await count(label=["customer=acme"]) == 2
    assert await count(label=["customer=acme", "run=b"]) == 1
    assert await count(key="k-2", tenant="bulk-labels") == 1
    assert await count(key="k-2", tenant="public") == 0
    assert (await done(call, "/bulk/executions/cancel", chosen={"label": ["customer=acme"]}))["count"] == 2
    remaining = await call.get(f"{V1}/executions?tenant=bulk-labels&status=requested")
    assert [row["id"] for row in remaining.json()["items"]] == [str(other)]
    chosen = {"status": ["cancelled"], "label": ["customer=acme", "run=a"]}
    assert (await done(call, "/bulk/executions/rerun", chosen=chosen, dry_run=True))["count"] == 1
    await api.token("bulk-stranger", "operator", tenants=("elsewhere",))
    async with api.caller("bulk-stranger") as caller:
        foreign = await done(
            caller, "/bulk/executions/cancel", chosen={"label": ["customer=bolt"]}, dry_run=True
        )
        assert foreign["count"] == 0
    await api.house.client.cancel(other)
    await api.house.until(
        "select 1 where not exists (select from execution e join namespace n on n.id = e.namespace_id "
        "where n.name like 'bulk-labels::%' and e.finished_at is null)"
    )


@pytest.mark.parametrize("chosen", [{"status": []}, {"action": ""}, {"label": []}, {"label": ["customer"]}])
async def test_empty_or_wrong_filter_selects_nothing(call: AsyncClient, chosen: dict[str, Any]) -> None:
    refused = await call.post(f"{V1}/bulk/executions/cancel", json={"chosen": chosen, "dry_run": True})
    assert refused.status_code == 422, refused.text


async def test_it_has_to_be_said_which(call: AsyncClient) -> None:
    for path in (
        "bulk/executions/cancel",
        "bulk/executions/rerun",
        "bulk/dead-letters/drop",
        "bulk/dead-letters/replay",
    ):
        refused = await call.post(f"{V1}/{path}", json={})
        assert (refused.status_code, "nothing is selected" in refused.text) == (422, True), path
    unknown = await call.post(f"{V1}/bulk/executions/cancel", json={"chosen": {"status": ["gone"]}})
    assert (unknown.status_code, "unknown status" in unknown.text) == (422, True)


async def test_dead_letters_are_dropped_by_their_reason(api: Api, call: AsyncClient) -> None:
    insert = """insert into dead_letter (id, queue, reason, body, headers, fingerprint)
        select gen_random_uuid(), 'event.received', $1, '{}', '{}', gen_random_uuid()::text from generate_series(1, 3)"""
    for reason in ("bulk: one", "bulk: two"):
        await api.house.rows(insert, reason)
    assert (await done(call, "/bulk/dead-letters/drop", reason="bulk: one", dry_run=True))["count"] == 3
    assert (await done(call, "/bulk/dead-letters/drop", reason="bulk: one"))["count"] == 3
    replayed = await done(call, "/bulk/dead-letters/replay", reason="bulk: two")
    assert (replayed["count"], sum(one["count"] for one in replayed["refused"])) == (0, 3)
    assert (await done(call, "/bulk/dead-letters/drop", reason="bulk: two"))["count"] == 3
