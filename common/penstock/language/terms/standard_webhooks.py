"""Signatures of Standard Webhooks (standardwebhooks.com), version 1: HMAC-SHA256 over the id, the instant and the body."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os

PREFIX = "whsec_"


def new_secret() -> str:
    """192 random bits, as the standard writes them."""
    return PREFIX + base64.b64encode(os.urandom(24)).decode()


def signature(secret: str, id: str, at: str, body: bytes) -> str:
    """Without its version. `secret`: base64, perhaps after whsec_; `at`: seconds since 1970, as text."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return base64.b64encode(hmac.new(key, f"{id}.{at}.".encode() + body, hashlib.sha256).digest()).decode()
