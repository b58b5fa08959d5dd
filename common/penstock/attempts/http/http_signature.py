"""The signature of requests of HTTP actions, by the Standard Webhooks specification (standardwebhooks.com).

    webhook-id: <execution id>:<attempt>
    webhook-timestamp: <seconds since 1970>
    webhook-signature: v1,<base64 of HMAC-SHA256(secret, "<id>.<timestamp>.<body>")>

Receivers in most languages find a library that verifies it. They refuse timestamps older than a few minutes, so that a
recorded request cannot be sent again.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from penstock.errors import ConfigurationError

PREFIX = "whsec_"


def headers(secret: str, id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the three headers. `secret` is text, or base64 after `whsec_`. Raises ConfigurationError for invalid
    base64."""
    signed = b"%s.%d.%s" % (id.encode(), timestamp, body)
    digest = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    return {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def _key(secret: str) -> bytes:
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ConfigurationError(
            "a signing secret that starts with whsec_ must continue in base64",
            hint="Make one: openssl rand -base64 32",
        ) from None
