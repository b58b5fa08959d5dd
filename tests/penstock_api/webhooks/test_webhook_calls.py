"""Calls of other programs become events: signed as each kind of sender signs, once for each call."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import httpx
import pytest
import structlog

from penstock.language.definitions.trigger import Trigger
from tests.penstock_api.conftest import Api

SECRET = "c2VjcmV0LW9mLXdlYmhvb2tz"
V1 = "/api/v1"


def signed(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).digest()


def plain(body: bytes, at: int, secret: str) -> dict[str, str]:
    return {"x-webhook-secret": secret}


def github(body: bytes, at: int, secret: str) -> dict[str, str]:
    return {
        "x-hub-signature-256": "sha256=" + signed(secret.encode(), body).hex(),
        "x-github-delivery": "d-1",
    }


def stripe(body: bytes, at: int, secret: str) -> dict[str, str]:
    value = signed(secret.encode(), f"{at}.".encode() + body).hex()
    return {"stripe-signature": f"t={at},v1=00,v1={value}"}


def standard(body: bytes, at: int, secret: str) -> dict[str, str]:
    value = base64.b64encode(signed(base64.b64decode(secret), f"m-1.{at}.".encode() + body)).decode()
    return {"webhook-id": "m-1", "webhook-timestamp": str(at), "webhook-signature": f"v1,AAAA v1,{value}"}


KINDS = {"secret": plain, "github": github, "stripe": stripe, "standard": standard}
Sign = Callable[[bytes, int, str], dict[str, str]]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_that_is_signed_is_an_event_once(kind: str, api: Api, call: httpx.AsyncClient) -> None:
    sign: Sign = KINDS[kind]
    made = await call.put(
        f"{V1}/webhooks/{kind}",
        json={
            "trigger": "shop.order_placed",
            "signature": kind,
            "secret": SECRET,
            "payload": {"id": "{{ body.n }}"},
        },
    )
    assert made.status_code == 200
    assert SECRET not in made.text + (await call.get(f"{V1}/webhooks")).text
    body, now = json.dumps({"n": 7, "id": "evt_1"}).encode(), int(time.time())
    async with api.caller(None) as sender:

        async def send(body: bytes, headers: dict[str, str]) -> httpx.Response:
            return await sender.post(f"/hooks/{kind}", content=body, headers=headers)

        first = await send(body, sign(body, now, SECRET))
        assert first.status_code == 202, first.text
        if kind != "secret":  # which says nothing about which call it is
            assert (await send(body, sign(body, now, SECRET))).json() == first.json()
        forged = sign(body, now, base64.b64encode(b"another secret!!").decode())
        for wrong in ({}, forged):
            assert (await send(body, wrong)).status_code == 401
        if kind != "secret":
            assert (await send(body + b" ", sign(body, now, SECRET))).status_code == 401
        if kind in ("stripe", "standard"):
            assert (await send(body, sign(body, now - 301, SECRET))).status_code == 401
    [event] = await api.house.rows(
        "select payload::text, source, tenant from event where id = $1", UUID(first.json()["id"])
    )
    assert (json.loads(event[0]), event[1], event[2]) == ({"id": 7}, f"webhook:{kind}", "public")
    assert (await call.delete(f"{V1}/webhooks/{kind}")).status_code == 204
    async with api.caller(None) as sender:
        assert (await sender.post(f"/hooks/{kind}", content=body)).status_code == 404


async def test_a_call_that_cannot_be_an_event_is_refused_and_recorded(
    api: Api, call: httpx.AsyncClient
) -> None:
    given: dict[str, Any] = {"trigger": "shop.order_placed", "signature": "secret", "secret": SECRET}
    assert (await call.put(f"{V1}/webhooks/odd", json={**given, "secret": "short"})).status_code == 422
    assert (await call.put(f"{V1}/webhooks/odd", json={**given, "payload": "{{ open"})).status_code == 422
    assert (
        await call.put(f"{V1}/webhooks/odd", json={**given, "trigger": "shop.nothing"})
    ).status_code == 404
    assert (await call.put(f"{V1}/webhooks/odd", json={**given, "secret": None})).status_code == 422
    assert (await call.put(f"{V1}/webhooks/odd", json=given)).status_code == 200
    headers = {"x-webhook-secret": SECRET}
    async with api.caller(None) as sender:

        async def send(content: bytes, **more: str) -> int:
            return (await sender.post("/hooks/odd", content=content, headers={**headers, **more})).status_code

        assert await send(b"{not json") == 422
        assert await send(b"null") == 422
        assert await send(b'{"id": "no number"}') == 422
        assert await send(b'{"id": 123456789012345678901234567890}') == 422
        assert await send(b'{"id": 1, "pad": "' + b"x" * 400_000 + b'"}') == 413
        assert await send(b'{"id": 1}') == 202
        form = {**given, "payload": {"id": "{{ body.id | int }}"}}
        assert (await call.put(f"{V1}/webhooks/odd", json={**form, "secret": None})).status_code == 200
        assert await send(b"id=7&name=x", **{"content-type": "application/x-www-form-urlencoded"}) == 202
        kind = "application/x-www-form-urlencoded; charset="
        assert await send(b"id=7&name=caf%E9", **{"content-type": kind + "utf-8"}) == 422
        assert await send(b"id=7&name=caf%E9", **{"content-type": kind + "idna"}) == 422
        named = {
            **given,
            "payload": {"id": "{{ 7 if body['n\u00e4me'] == 'caf\u00e9' else 0 }}"},
            "secret": None,
        }
        assert (await call.put(f"{V1}/webhooks/odd", json=named)).status_code == 200
        for fields in (b"n%E4me=caf%E9", b"n\xe4me=caf\xe9"):
            sent = await sender.post(
                "/hooks/odd", content=fields, headers={**headers, "content-type": kind + '"ISO-8859-1"'}
            )
            [row] = await api.house.rows(
                "select payload ->> 'id' as id from event where id = $1", UUID(sent.json()["id"])
            )
            assert row["id"] == "7"
        repeated = {"id": "{{ (body.id | length) * 10 + (query.a | length) }}"}
        assert (
            await call.put(f"{V1}/webhooks/odd", json={**given, "payload": repeated, "secret": None})
        ).status_code == 200
        lists = await sender.post(
            "/hooks/odd?a=1&a=2&a=3",
            content=b"id=a%40x&id=b%40x&n=1",
            headers={**headers, "content-type": "application/x-www-form-urlencoded"},
        )
        stored = "select payload::text as payload from event where id = $1"
        [event] = await api.house.rows(stored, UUID(lists.json()["id"]))
        assert json.loads(event["payload"]) == {"id": 23}
        fields = b"&".join(b"f%d=x" % n for n in range(1001))
        assert await send(fields, **{"content-type": "application/x-www-form-urlencoded"}) == 422
    await call.delete(f"{V1}/webhooks/odd")


async def test_github_body_is_one_event_whatever_its_headers_say(api: Api, call: httpx.AsyncClient) -> None:
    made = {
        "trigger": "shop.order_placed",
        "signature": "github",
        "secret": SECRET,
        "payload": {"id": "{{ body.id }}"},
    }
    assert (await call.put(f"{V1}/webhooks/hub", json=made)).status_code == 200
    body = b'{"id": 21}'
    form = b"payload=%7B%22id%22%3A+22%7D"
    async with api.caller(None) as sender:

        async def send(body: bytes, delivery: str, **more: str) -> httpx.Response:
            headers = {**github(body, 0, SECRET), "x-github-delivery": delivery, **more}
            return await sender.post("/hooks/hub", content=body, headers=headers)

        first = await send(body, "d-1")
        assert first.status_code == 202, first.text
        assert (await send(body, "d-2")).json() == first.json()
        other = await send(b'{"id": 23}', "d-1")
        assert (other.status_code, other.json() != first.json()) == (202, True)
        kind = {"content-type": "application/x-www-form-urlencoded"}
        unwrapped = await send(form, "d-3", **kind)
        assert unwrapped.status_code == 202, unwrapped.text
        assert (await send(b"payload=%7Bnot", "d-4", **kind)).status_code == 422
    [event] = await api.house.rows(
        "select payload::text from event where id = $1", UUID(unwrapped.json()["id"])
    )
    assert json.loads(event[0]) == {"id": 22}
    await call.delete(f"{V1}/webhooks/hub")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"payload": {"id": "{{ bdy.id }}"}}, "payload: `bdy` is not defined here"),
        ({"payload": "{{ bdy }}"}, "payload: `bdy` is not defined here"),
        ({"payload": {"amount": 2}}, "payload: `shop.order_placed` needs the field `id`"),
        ({"payload": {"id": "seven"}}, "payload: id: expected integer, got string"),
        (
            {"payload": {"id": "no {{ body.id }}"}},
            "payload: id: expected integer, and `no {{ body.id }}` is always string",
        ),
        ({"completes": "{{ bod.id }}", "key_header": "X-Key"}, "completes: `bod` is not defined here"),
        (
            {"completes": "{{ body.id }}", "fails": "bod.x", "key_header": "X-Key"},
            "fails: `bod` is not defined here",
        ),
    ],
)
async def test_a_webhook_whose_templates_fit_no_call_is_refused(
    wrong: dict[str, Any], message: str, call: httpx.AsyncClient
) -> None:
    base = {"trigger": "shop.order_placed", "signature": "secret", "secret": SECRET}
    answer = await call.put(f"{V1}/webhooks/unfit", json=base | wrong)
    assert (answer.status_code, answer.json()["detail"]) == (422, message)
    assert not [row for row in (await call.get(f"{V1}/webhooks")).json() if row["name"] == "unfit"]


async def test_a_payload_names_only_fields_of_a_closed_schema(api: Api, call: httpx.AsyncClient) -> None:
    fields = {"number": {"type": "string"}, "customer": {"type": "string"}}
    await api.house.apply(
        Trigger("shop.closed", schema={"type": "object", "properties": fields, "additionalProperties": False})
    )
    base = {"trigger": "shop.closed", "signature": "secret", "secret": SECRET}
    answer = await call.put(
        f"{V1}/webhooks/closed", json={**base, "payload": {"customr": "{{ body.customer }}"}}
    )
    assert answer.status_code == 422
    assert answer.json()["detail"] == "payload: `shop.closed` has no field `customr`"
    assert answer.json()["hint"] == "Did you mean 'customer'?"


async def test_caller_that_hangs_up_in_its_body_logs_nothing(api: Api, call: httpx.AsyncClient) -> None:
    made = await call.put(
        f"{V1}/webhooks/cut", json={"trigger": "shop.order_placed", "signature": "secret", "secret": SECRET}
    )
    assert made.status_code == 200
    messages = iter(
        [{"type": "http.request", "body": b'{"n"', "more_body": True}, {"type": "http.disconnect"}]
    )
    sent: list[Any] = []

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/hooks/cut",
        "raw_path": b"/hooks/cut",
        "query_string": b"",
    }
    scope |= {
        "headers": [],
        "http_version": "1.1",
        "scheme": "http",
        "server": ("penstock", 80),
        "client": ("::1", 1),
    }
    with structlog.testing.capture_logs() as lines:
        await api.app(scope, receive, send)
    assert lines == []
    assert sent[0]["status"] == 400
    assert (await call.delete(f"{V1}/webhooks/cut")).is_success


async def test_if_none_match_only_creates(call: httpx.AsyncClient) -> None:
    webhook = {"trigger": "shop.order_placed", "signature": "secret", "secret": SECRET}
    only_new = {"if-none-match": "*"}
    for kind, path, first, second in (
        ("webhook", f"{V1}/webhooks/once", webhook, {**webhook, "payload": {"id": 7}}),
        (
            "subscription",
            f"{V1}/subscriptions/once",
            {"url": "https://example.org/first"},
            {"url": "https://example.org/second"},
        ),
    ):
        assert (await call.put(path, json=first, headers=only_new)).status_code == 200
        refused = await call.put(path, json=second, headers=only_new)
        assert (refused.status_code, refused.json()["hint"]) == (
            409,
            f"Change the existing {kind}, or choose another name.",
        )
        [row] = (await call.get(path.removesuffix("/once"))).json()
        assert row.get("payload") is None
        assert row.get("url") == first.get("url")
        assert (await call.put(path, json=second)).status_code == 200
        assert (await call.delete(path)).status_code == 204
