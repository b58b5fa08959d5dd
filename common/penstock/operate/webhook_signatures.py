"""The check of a webhook call's signature, and the key that identifies a repeated call. It is pure: the current
instant is a parameter."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping

from penstock.errors import NotAuthenticated
from penstock.language.terms.standard_webhooks import signature
from penstock.store.access.webhooks import Webhook

TOLERANCE = 300.0
"""The seconds by which a signed instant may differ from now, so that a recorded call cannot be replayed later."""
TIMED = ("stripe", "standard")
"""The schemes that sign an instant."""
SECRET_HEADER = "x-webhook-secret"

Headers = Mapping[str, str]
"""The headers of a call, by lower-case name."""


def check(webhook: Webhook, secret: str, headers: Headers, body: bytes, now: float) -> None:
    """Raise NotAuthenticated unless the signature of the call is valid."""
    if not CHECKS[webhook.signature](webhook, secret, headers, body, now):
        raise NotAuthenticated(
            f"this call does not have a valid signature for webhook {webhook.name} ({webhook.signature})",
            hint="Compare the secrets on both sides, and this machine's clock."
            if webhook.signature in TIMED
            else "Compare the secrets on both sides.",
        )


def _secret(webhook: Webhook, secret: str, headers: Headers, body: bytes, now: float) -> bool:
    return _same(headers.get((webhook.header or SECRET_HEADER).lower(), ""), secret)


def _github(webhook: Webhook, secret: str, headers: Headers, body: bytes, now: float) -> bool:
    expected = "sha256=" + _hmac(secret.encode(), body).hex()
    return _same(headers.get("x-hub-signature-256", ""), expected)


def _stripe(webhook: Webhook, secret: str, headers: Headers, body: bytes, now: float) -> bool:
    parts = [part.strip().partition("=") for part in headers.get("stripe-signature", "").split(",")]
    at = next((value for name, _, value in parts if name == "t"), "")
    if not _is_fresh(at, now):
        return False
    expected = _hmac(secret.encode(), at.encode() + b"." + body).hex()
    return any(_same(value, expected) for name, _, value in parts if name == "v1")


def _standard(webhook: Webhook, secret: str, headers: Headers, body: bytes, now: float) -> bool:
    id, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not id or not _is_fresh(at, now):
        return False
    expected = signature(secret, id, at, body)
    signatures = [word.partition(",") for word in headers.get("webhook-signature", "").split()]
    return any(_same(value, expected) for version, _, value in signatures if version == "v1")


CHECKS: dict[str, Callable[[Webhook, str, Headers, bytes, float], bool]] = {
    "secret": _secret,
    "github": _github,
    "stripe": _stripe,
    "standard": _standard,
}
KEY_HEADERS = {"standard": "webhook-id"}
"""The signed header in which senders of a kind identify a call. Stripe does so in the body, as `id`."""


def key_of(webhook: Webhook, headers: Headers, raw: bytes, body: object) -> str | None:
    """Return a key that is equal for a repeated call, or None if the call has no such key.

    GitHub signs only the body. An eavesdropper on one call could send its body again with another `X-GitHub-Delivery`.
    So the body is the key.
    """
    if webhook.key_header is None and webhook.signature == "github":
        return f"sha256:{hashlib.sha256(raw).hexdigest()}"
    if webhook.key_header is None and webhook.signature == "stripe":
        return str(body["id"]) if isinstance(body, dict) and body.get("id") else None
    return headers.get((webhook.key_header or KEY_HEADERS.get(webhook.signature, "")).lower()) or None


def _hmac(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).digest()


def _same(first: str, other: str) -> bool:
    """Return whether both texts are equal, in constant time."""
    return hmac.compare_digest(first.encode(), other.encode())


def _is_fresh(at: str, now: float) -> bool:
    return bool(re.fullmatch(r"[0-9]{1,12}", at)) and abs(now - int(at)) <= TOLERANCE
