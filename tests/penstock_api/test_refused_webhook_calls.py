"""Refused calls of webhooks and callbacks are counted by webhook, reason and hour, whatever their callers send."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

import httpx
import pytest
from fastapi import Request
from starlette.requests import ClientDisconnect
from structlog.testing import capture_logs

from penstock.errors import ConnectionFailed
from penstock.operate.execution_tokens import packed
from penstock.store.access import signing_key
from penstock_api import refused_webhook_calls
from penstock_api.refused_webhook_calls import RefusedWebhookCalls, refused_as
from penstock_api.session_pool import SessionPool
from tests.penstock.cli.commands import penstock
from tests.penstock_api.conftest import Api

V1 = "/api/v1"
SECRET = "c2VjcmV0LW9mLXdlYmhvb2tz"


async def counted(api: Api, call: httpx.AsyncClient, webhook: str | None) -> dict[str, int]:
    """Return the numbers of refused calls of a webhook, by reason."""
    await api.app.state.backend.refused_webhook_calls.close()
    listed = (await call.get(f"{V1}/webhook-refusals")).json()
    return {row["reason"]: row["calls"] for row in listed if row["webhook"] == webhook}


async def create(call: httpx.AsyncClient, name: str, **options: Any) -> None:
    whole = {"trigger": "shop.order_placed", "signature": "secret", "secret": SECRET, **options}
    assert (await call.put(f"{V1}/webhooks/{name}", json=whole)).status_code == 200


async def test_each_kind_of_refused_call_is_counted(api: Api, call: httpx.AsyncClient) -> None:
    await create(call, "till", key_header="x-id")
    await create(call, "strict", payload={"id": "{{ body.order.id }}"})
    signed = {"x-webhook-secret": SECRET}
    async with api.caller(None) as sender:

        async def refused(status: int, name: str, method: str = "POST", **sent: Any) -> None:
            answer = await sender.request(method, f"/hooks/{name}", **sent)
            assert answer.status_code == status, answer.text

        for _ in range(3):
            await refused(401, "till", json={"id": 7}, headers={"x-webhook-secret": "wrong-and-hidden"})
        await refused(405, "till", "GET")
        await refused(405, "till", "HEAD")
        await refused(413, "till", content=b"x" * 400_000, headers=signed)
        await refused(422, "till", content=b"{", headers=signed)
        await refused(422, "till", json={"id": "seven"}, headers=signed)
        await refused(422, "strict", json={}, headers=signed)
        keyed = {**signed, "x-id": "c-1"}
        assert (await sender.post("/hooks/till", json={"id": 7}, headers=keyed)).status_code == 202
        await refused(409, "till", json={"id": 8}, headers=keyed)
        await refused(404, "tilll", json={})
        await refused(404, "no%20name", json={})
    assert await counted(api, call, "till") == {
        "wrong signature": 3,
        "wrong method": 2,
        "too large": 1,
        "invalid body": 1,
        "invalid payload": 1,
        "key of another call": 1,
    }
    assert await counted(api, call, "strict") == {"failed template": 1}
    listed = (await call.get(f"{V1}/webhook-refusals")).json()
    [unknown] = [row for row in listed if row["webhook"] is None and row["reason"] == "unknown webhook"]
    assert (unknown["calls"], unknown["last_name"]) == (2, "tilll")
    everything = str(await api.house.rows("select * from webhook_refusal"))
    assert "hidden" not in everything
    assert "seven" not in everything
    page = (await call.get("/webhooks")).text
    assert "wrong signature" in page
    assert "last name: tilll" in page
    assert (await call.delete(f"{V1}/webhooks/till")).status_code == 204
    assert await counted(api, call, "till") == {}
    await call.delete(f"{V1}/webhooks/strict")
    await api.house.rows("delete from webhook_refusal returning 1")


async def test_each_kind_of_refused_callback_is_counted(api: Api, call: httpx.AsyncClient) -> None:
    started = await call.post(f"{V1}/executions", json={"action": "shop.count", "parameters": {"words": "a"}})
    id = UUID(started.json()["id"])
    await api.house.client.result(id, timeout=20)
    signed = packed(id, 1, await signing_key.expected(api.house.session, id, 1, "callback"))
    async with api.caller(None) as sender:
        for address, method, sent, status in (
            ("forged", "POST", b'{"result": 1}', 404),
            ("forged", "GET", b"", 405),
            (signed, "POST", b'{"result": 1}', 409),
            (signed, "POST", b"{", 422),
            (signed, "POST", b'{"outcome": 1}', 422),
            (signed, "POST", b"x" * 400_000, 413),
            ("x" * 300, "POST", b'{"result": 1}', 422),
        ):
            answer = await sender.request(method, f"/callbacks/{address}", content=sent)
            assert answer.status_code == status, answer.text
    assert await counted(api, call, None) == {
        "callback: unknown address": 1,
        "callback: wrong method": 1,
        "callback: the attempt does not wait": 1,
        "callback: invalid body": 3,
        "callback: too large": 1,
    }
    rows = await api.house.rows("select webhook, last_name from webhook_refusal")
    assert {(row["webhook"], row["last_name"]) for row in rows} == {("", None)}
    assert "callback: unknown address" in (await call.get("/webhooks")).text
    await api.house.rows("delete from webhook_refusal returning 1")


async def test_commands_show_refused_calls_of_a_webhook(
    api: Api, call: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = api.house.settings().database_url
    assert database is not None
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database.get_secret_value())
    await create(call, "quiet")
    await create(call, "noisy")
    async with api.caller(None) as sender:
        for name in ("noisy", "noisy", "nowhere"):
            assert (await sender.post(f"/hooks/{name}", json={})).status_code in (401, 404)
    await api.app.state.backend.refused_webhook_calls.close()
    numbers = {
        row["name"]: row["refused"] for row in (await penstock("webhooks", "list", "--json")).documents
    }
    assert (numbers["noisy"], numbers["quiet"]) == (2, 0)
    assert "3 calls were refused" in " ".join((await penstock("webhooks", "list")).err.split())
    assert "wrong signature" in (await penstock("webhooks", "show", "noisy")).out
    assert "No call was refused" in (await penstock("webhooks", "show", "quiet")).out
    [row] = (await penstock("webhooks", "show", "noisy", "--json")).document["refusals"]
    assert (row["reason"], row["calls"]) == ("wrong signature", 2)
    rows = (await penstock("webhooks", "refusals", "--json")).documents
    assert {(row["webhook"], row["last_name"]) for row in rows} == {("noisy", None), (None, "nowhere")}
    assert "penstock webhooks list" in (await penstock("webhooks", "show", "nowhere")).err
    for name in ("quiet", "noisy"):
        await call.delete(f"{V1}/webhooks/{name}")
    await api.house.rows("delete from webhook_refusal returning 1")


async def test_flood_of_names_writes_few_rows_in_one_statement(api: Api, call: httpx.AsyncClient) -> None:
    begun: list[Callable[[], None]] = []
    calls = RefusedWebhookCalls(api.app.state.backend.pool, begun.append)
    for n in range(2000):
        calls.note(f"name-{n}", "unknown webhook")
        calls.note("x" * 100_000, "too large")
    assert len(begun) == 1
    assert len(calls._calls) <= 102
    await calls.close()
    rows = await api.house.rows(
        "select webhook, reason, calls, octet_length(last_name) as size from webhook_refusal"
    )
    assert {(row["webhook"], row["reason"], row["calls"]) for row in rows} == {
        ("", "unknown webhook", 2000),
        ("", "too large", 2000),
    }
    assert all((row["size"] or 0) <= 63 for row in rows)
    await api.house.rows("delete from webhook_refusal returning 1")


async def test_refusals_during_a_slow_write_are_counted_by_the_next(api: Api) -> None:
    begun: list[Any] = []
    calls = RefusedWebhookCalls(api.app.state.backend.pool, begun.append)
    async with api.house.session.transaction() as tx:
        await tx.fetch("lock table webhook_refusal in access exclusive mode")
        calls.note("slow", "wrong method")
        begun.pop()()
        await asyncio.sleep(0)
        calls.note("slow", "wrong method")
        begun.pop()()  # the first statement still waits for the lock
        assert len(begun) == 1
    await calls.close()
    [row] = await api.house.rows("delete from webhook_refusal returning calls")
    assert row["calls"] == 2


ANSWERED = [
    ("/hooks/till", 400, ("till", "unreadable call")),
    ("/hooks/till", 401, ("till", "wrong signature")),
    ("/hooks/till", 500, ("till", "service failed")),
    ("/hooks/till/more", 404, ("", "unknown webhook")),
    ("/callbacks/token", 400, ("", "callback: unreadable call")),
    ("/callbacks/token", 404, ("", "callback: unknown address")),
    ("/callbacks/token", 500, ("", "callback: service failed")),
    ("/hooks/till", 202, None),
    ("/hooks/till", 399, None),
    ("/callbacks/token", 200, None),
    ("/api/v1/webhooks", 401, None),
    ("/", 404, None),
]
"""The path and status of an answer, and the name and reason of the refusal."""


async def answer(calls: RefusedWebhookCalls, scope: dict[str, Any], status: int) -> list[Any]:
    """Answer a call, and return the messages that reach the server."""
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    watched = calls.watched(scope, send)
    await watched({"type": "http.response.start", "status": status})
    await watched({"type": "http.response.body", "body": b""})
    return messages


@pytest.mark.parametrize(("path", "status", "counted"), ANSWERED)
async def test_refusing_answer_is_counted_by_its_status(
    path: str, status: int, counted: tuple[str, str] | None
) -> None:
    calls = RefusedWebhookCalls(cast(SessionPool, None), lambda _: None)
    messages = await answer(calls, {"path": path}, status)
    assert [message["type"] for message in messages] == ["http.response.start", "http.response.body"]
    assert dict(calls._calls) == ({} if counted is None else {counted: 1})


async def test_reason_of_the_route_replaces_that_of_the_status() -> None:
    calls = RefusedWebhookCalls(cast(SessionPool, None), lambda _: None)
    scope: dict[str, Any] = {"path": "/hooks/till"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            assert dict(calls._calls) == {("till", "caller hung up"): 1}

    watched = calls.watched(scope, send)
    with pytest.raises(ClientDisconnect), refused_as(Request({"type": "http", **scope}), {ValueError: "no"}):
        raise ClientDisconnect
    reasons = {KeyError: "a key", ClientDisconnect: "caller hung up", Exception: "any"}
    request = Request({"type": "http"} | scope)
    with pytest.raises(ClientDisconnect), refused_as(request, reasons):
        raise ClientDisconnect
    await watched({"type": "http.response.start", "status": 400})
    assert dict(calls._calls) == {("till", "caller hung up"): 1}


def test_names_beyond_the_maximum_are_counted_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_webhook_calls, "MOST_KEYS", 2)
    calls = RefusedWebhookCalls(cast(SessionPool, None), lambda _: None)
    for name in ("a", "b", "c", "a", "d", "not a name"):
        calls.note(name, "too large")
    assert dict(calls._calls) == {("a", "too large"): 2, ("b", "too large"): 1, ("", "too large"): 3}


async def test_counts_that_cannot_be_written_are_logged() -> None:
    begun: list[Callable[[], None]] = []

    class Failing:
        def session(self) -> None:
            raise ConnectionFailed("no session is free")

    calls = RefusedWebhookCalls(cast(SessionPool, Failing()), begun.append)
    with capture_logs() as logs:
        for _ in range(3):
            calls.note("till", "too large")
        await calls.close()
        await calls.close()
    assert logs == [
        {
            "event": "api.webhook_refusals_not_counted",
            "log_level": "warning",
            "count": 3,
            "reason": "no session is free",
        }
    ]
    calls.note("till", "too large")
    assert len(begun) == 2


async def test_refusal_is_counted_after_an_interval(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_webhook_calls, "INTERVAL", 0.05)
    calls = RefusedWebhookCalls(api.app.state.backend.pool)
    calls.note("later", "too large")
    assert not await api.house.rows("select 1 from webhook_refusal")
    await api.house.until("select 1 from webhook_refusal where last_name = 'later'")
    assert not calls._calls
    await calls.close()
    await api.house.rows("delete from webhook_refusal returning 1")
