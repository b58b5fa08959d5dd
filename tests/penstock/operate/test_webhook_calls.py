"""The meaning of webhook calls: what they publish, their keys, and the outcomes that they report."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from penstock.errors import InvalidInput, NotAuthenticated
from penstock.operate.outside import Report
from penstock.operate.webhook_calls import FORM, FORM_FIELDS, Call, Meaning, read
from penstock.store.access.webhooks import Webhook

SECRET = "a secret of sixteen"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVENT = UUID(int=7)
PLAIN = Webhook(
    "ci", "shop.called", "public", "secret", None, "X-Id", None, None, None, created_by="ada", created_at=NOW
)
GITHUB = replace(PLAIN, signature="github", key_header=None)


def meaning(webhook: Webhook, raw: bytes, query: Any = (), **headers: str) -> Meaning:
    signature = "sha256=" + hmac.new(SECRET.encode(), raw, hashlib.sha256).hexdigest()
    signed = {"x-webhook-secret": SECRET, "x-hub-signature-256": signature}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return read(webhook, SECRET, Call(raw, {**signed, **named}, query), NOW.timestamp())


def test_body_is_the_payload_and_a_header_the_key() -> None:
    assert meaning(PLAIN, b'{"n": 1}', x_id="a") == Meaning("ci", {"n": 1}, "a", None, False)
    assert meaning(PLAIN, b'{"n": 1}').key is None


def test_wrong_secret_is_refused_before_the_body_is_read() -> None:
    with pytest.raises(NotAuthenticated):
        meaning(PLAIN, b"{", x_webhook_secret="another")


def test_repeated_fields_of_forms_and_queries_are_lists() -> None:
    webhook = replace(PLAIN, payload='{"body": "{{ body }}", "query": "{{ query }}"}')
    read_as = meaning(webhook, b"n=7&n=8&a=1", [("q", "x"), ("q", "y")], content_type=FORM)
    assert read_as.payload == {"body": {"n": ["7", "8"], "a": "1"}, "query": {"q": ["x", "y"]}}
    with pytest.raises(InvalidInput, match="a form has at most"):
        meaning(webhook, b"&".join([b"n=1"] * (FORM_FIELDS + 1)), content_type=FORM)


def test_form_of_github_has_the_document_in_a_field() -> None:
    called = meaning(GITHUB, b"payload=%7B%22n%22%3A9%7D", content_type=FORM)
    assert called.payload == {"n": 9}
    assert called.key == f"sha256:{hashlib.sha256(b'payload=%7B%22n%22%3A9%7D').hexdigest()}"


def test_call_with_an_id_reports_a_result_or_an_error() -> None:
    webhook = replace(GITHUB, completes="{{ body.id }}", fails="not body.ok")
    assert meaning(webhook, b'{"id": "a", "ok": true}').outcome(EVENT) == Report(
        "result", {"id": "a", "ok": True}
    )
    failure = meaning(webhook, b'{"id": "a", "ok": false}')
    assert failure.awaited == "a"
    text = f'the webhook ci reports a failure in event {EVENT}: {{"id":"a","ok":false}}'
    assert failure.outcome(EVENT) == Report("error", text)
    long = meaning(webhook, b'{"id": "a", "ok": false, "log": "' + b"x" * 5000 + b'"}').outcome(EVENT)
    assert len(long.value) < 1200


def test_call_with_an_id_needs_a_key() -> None:
    webhook = replace(PLAIN, completes="{{ body.id }}")
    with pytest.raises(InvalidInput, match="the call lacks the key header"):
        meaning(webhook, b'{"id": "a"}')
    assert meaning(webhook, b'{"id": "a"}', x_id="1").awaited == "a"
    assert meaning(webhook, b'{"id": ""}').awaited is None


def test_payload_of_an_event_is_not_null() -> None:
    with pytest.raises(InvalidInput, match="would be null"):
        meaning(PLAIN, b"null")
